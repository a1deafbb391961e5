from hologram_lang import *


def onnx_averagepool(x: DeviceArray[f32], y: DeviceArray[f32], planes: u32, height: u32, width: u32,
                     out_height: u32, out_width: u32, kernel_height: u32, kernel_width: u32,
                     stride_y: u32, stride_x: u32, pad_top: u32, pad_left: u32, pad_bottom: u32,
                     pad_right: u32, count_include_pad: bool):
    """y = the mean of each window of x, plane by plane (batch x channels planes).

    The mean is over the part of the window inside x, or with count_include_pad inside x and its
    padding. A window with nothing inside gives 0.
    """
    launch(out_width, out_height, planes)
    block(64, 1, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    plane = get_global_id(2)
    if column < out_width and row < out_height and plane < planes:
        total = 0.0
        count = 0
        for ky in range(kernel_height):
            v = i64(row) * stride_y + ky - pad_top
            for kx in range(kernel_width):
                u = i64(column) * stride_x + kx - pad_left
                if v >= 0 and v < height and u >= 0 and u < width:
                    total += x[(u64(plane) * height + u64(v)) * width + u64(u)]
                    count += 1
                elif count_include_pad and v < i64(height) + pad_bottom and u < i64(width) + pad_right:
                    count += 1
        y[(u64(plane) * out_height + row) * out_width + column] = total / max(count, 1)
