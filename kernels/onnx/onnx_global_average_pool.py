from hologram_lang import *


BLOCK = 64


def onnx_global_average_pool(x: DeviceArray[f32], y: DeviceArray[f32], planes: u32, spatial: u32):
    """y[p] = the mean of plane p of `spatial` values. A block a plane."""
    launch(u64(planes) * BLOCK)
    block(BLOCK)
    plane = get_group_id()
    if plane < planes:
        total = 0.0
        for i in range(get_local_id(), spatial, BLOCK):
            total += x[u64(plane) * spatial + i]
        whole = group_add(total)
        if get_local_id() == 0:
            y[plane] = whole / spatial
