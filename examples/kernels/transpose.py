from hologram_lang import *

TILE = 16


def transpose_tiled(a: DeviceArray[f32, 2], b: DeviceArray[f32, 2]):
    """b = a transposed. A tile goes through shared memory, so that both arrays are read and
    written along their rows; the tile's rows are one longer, so that columns do not collide."""
    launch(a.shape[1], a.shape[0])
    block(TILE, TILE)
    tile = shared(f32, TILE, TILE + 1)
    x = get_global_id(0)
    y = get_global_id(1)
    if x < a.shape[1] and y < a.shape[0]:
        tile[get_local_id(1), get_local_id(0)] = a[y, x]
    barrier()
    column = get_group_id(1) * TILE + get_local_id(0)
    row = get_group_id(0) * TILE + get_local_id(1)
    if row < a.shape[1] and column < a.shape[0]:
        b[row, column] = tile[get_local_id(0), get_local_id(1)]
