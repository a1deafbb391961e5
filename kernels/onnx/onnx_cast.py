"""Casts between f32 and every other type, and between i32 and i64: integers wrap around, floats
saturate into integers, what is not 0 is True."""

from hologram_lang import *


def onnx_cast_f32_f64(a: DeviceArray[f32], c: DeviceArray[f64], n: u32):
    """c = f64(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f64(a[i])


def onnx_cast_f32_f16(a: DeviceArray[f32], c: DeviceArray[f16], n: u32):
    """c = f16(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f16(a[i])


def onnx_cast_f32_bf16(a: DeviceArray[f32], c: DeviceArray[bf16], n: u32):
    """c = bf16(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = bf16(a[i])


def onnx_cast_f32_i8(a: DeviceArray[f32], c: DeviceArray[i8], n: u32):
    """c = i8(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = i8(a[i])


def onnx_cast_f32_i16(a: DeviceArray[f32], c: DeviceArray[i16], n: u32):
    """c = i16(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = i16(a[i])


def onnx_cast_f32_i32(a: DeviceArray[f32], c: DeviceArray[i32], n: u32):
    """c = i32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = i32(a[i])


def onnx_cast_f32_i64(a: DeviceArray[f32], c: DeviceArray[i64], n: u32):
    """c = i64(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = i64(a[i])


def onnx_cast_f32_u8(a: DeviceArray[f32], c: DeviceArray[u8], n: u32):
    """c = u8(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = u8(a[i])


def onnx_cast_f32_u16(a: DeviceArray[f32], c: DeviceArray[u16], n: u32):
    """c = u16(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = u16(a[i])


def onnx_cast_f32_u32(a: DeviceArray[f32], c: DeviceArray[u32], n: u32):
    """c = u32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = u32(a[i])


def onnx_cast_f32_u64(a: DeviceArray[f32], c: DeviceArray[u64], n: u32):
    """c = u64(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = u64(a[i])


def onnx_cast_f32_bool(a: DeviceArray[f32], c: DeviceArray[bool], n: u32):
    """c = bool(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = bool(a[i])


def onnx_cast_f64_f32(a: DeviceArray[f64], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_f16_f32(a: DeviceArray[f16], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_bf16_f32(a: DeviceArray[bf16], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_i8_f32(a: DeviceArray[i8], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_i16_f32(a: DeviceArray[i16], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_i32_f32(a: DeviceArray[i32], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_i64_f32(a: DeviceArray[i64], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_u8_f32(a: DeviceArray[u8], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_u16_f32(a: DeviceArray[u16], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_u32_f32(a: DeviceArray[u32], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_u64_f32(a: DeviceArray[u64], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_bool_f32(a: DeviceArray[bool], c: DeviceArray[f32], n: u32):
    """c = f32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = f32(a[i])


def onnx_cast_i32_i64(a: DeviceArray[i32], c: DeviceArray[i64], n: u32):
    """c = i64(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = i64(a[i])


def onnx_cast_i64_i32(a: DeviceArray[i64], c: DeviceArray[i32], n: u32):
    """c = i32(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = i32(a[i])
