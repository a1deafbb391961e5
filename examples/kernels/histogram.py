from hologram_lang import *

BINS = 256
BLOCK = 256


def histogram(data: DeviceArray[u8], counts: DeviceArray[u32], n: u32):
    """counts[b] += how often the byte b stands in data.

    Each block counts in shared memory first; the counts then meet in the array by atomics.
    """
    launch(min((u64(n) + 15) // 16, 65536))
    block(BLOCK)
    local = shared(u32, BINS)
    own = get_local_id()
    local[own] = 0
    barrier()
    for i in range(u64(get_global_id()), n, get_global_size()):
        atomic_add(local, data[i], 1)
    barrier()
    if local[own] > 0:
        atomic_add(counts, own, local[own])
