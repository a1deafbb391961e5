from hologram_lang import *


def onnx_conv2d(x: DeviceArray[f32], w: DeviceArray[f32], bias: DeviceArray[f32],
                y: DeviceArray[f32], batch: u32, in_channels: u32, height: u32, width: u32,
                out_channels: u32, out_height: u32, out_width: u32, kernel_height: u32,
                kernel_width: u32, stride_y: u32, stride_x: u32, pad_top: u32, pad_left: u32,
                dilation_y: u32, dilation_x: u32, groups: u32):
    """y = conv(x, w) + bias, in NCHW order.

    x is batch x in_channels x height x width; w is out_channels x in_channels / groups x
    kernel_height x kernel_width; bias has out_channels values; y is batch x out_channels x
    out_height x out_width. groups divides both channel counts. What lies outside x counts as 0,
    so the padding below and to the right is what out_height and out_width ask for.
    """
    launch(out_width, out_height, u64(batch) * out_channels)
    block(64, 1, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    plane = get_global_id(2)
    if column < out_width and row < out_height and plane < u64(batch) * out_channels:
        channel = plane % out_channels
        depth = in_channels // groups
        first = channel // (out_channels // groups) * depth
        total = bias[channel]
        for c in range(depth):
            image = (u64(plane // out_channels) * in_channels + first + c) * height
            weights = (u64(channel) * depth + c) * kernel_height
            for ky in range(kernel_height):
                v = i64(row) * stride_y + i64(ky) * dilation_y - pad_top
                if v >= 0 and v < height:
                    line = (image + u64(v)) * width
                    for kx in range(kernel_width):
                        u = i64(column) * stride_x + i64(kx) * dilation_x - pad_left
                        if u >= 0 and u < width:
                            total += x[line + u64(u)] * w[(weights + ky) * kernel_width + kx]
        y[(u64(plane) * out_height + row) * out_width + column] = total
