from hologram_lang import *


def loss_squared_difference(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = (a - b) * (a - b); its mean is the mean squared error"""
    launch(n)
    i = get_global_id()
    if i < n:
        difference = a[i] - b[i]
        c[i] = difference * difference
