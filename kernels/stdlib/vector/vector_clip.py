from hologram_lang import *


def vector_clip(a: DeviceArray[f32], c: DeviceArray[f32], low: f32, high: f32, n: u32):
    """c = a held between low and high; high where low is above it; NaN stays NaN"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        x = low if x < low else x
        c[i] = high if x > high else x
