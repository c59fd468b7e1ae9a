import type { FormatName } from '../../formats/index.js';
import { type DtypeFacts, floatDtype, opaqueDtype, rawDtype } from '../dtype.js';

const scaled = 'leave it out, or dequantize it to F32 before saving';

/**
 * Every dtype of the safetensors format (`Dtype` of the reference implementation, version 0.8), in
 * its order: the reference lays tensors out by descending position in this list, then by name.
 */
export const safetensorsDtypes: ReadonlyMap<string, DtypeFacts> = new Map([
  ['BOOL', opaqueDtype(8, 'booleans')],
  ['F4', opaqueDtype(4, 'packed MXFP4 elements', scaled)],
  ['F6_E2M3', opaqueDtype(6, 'packed MXFP6 E2M3 elements', scaled)],
  ['F6_E3M2', opaqueDtype(6, 'packed MXFP6 E3M2 elements', scaled)],
  ['U8', rawDtype(8, '8-bit unsigned integers')],
  ['I8', rawDtype(8, '8-bit integers')],
  ['F8_E5M2', floatDtype('e5m2')],
  ['F8_E4M3', floatDtype('e4m3')],
  ['F8_E8M0', opaqueDtype(8, 'E8M0 block scales', scaled)],
  ['F8_E4M3FNUZ', opaqueDtype(8, 'E4M3 FNUZ numbers')],
  ['F8_E5M2FNUZ', opaqueDtype(8, 'E5M2 FNUZ numbers')],
  ['I16', rawDtype(16, '16-bit integers')],
  ['U16', rawDtype(16, '16-bit unsigned integers')],
  ['F16', floatDtype('fp16')],
  ['BF16', floatDtype('bf16')],
  ['I32', rawDtype(32, '32-bit integers')],
  ['U32', rawDtype(32, '32-bit unsigned integers')],
  ['F32', floatDtype('fp32')],
  ['C64', opaqueDtype(64, 'complex numbers')],
  ['F64', floatDtype('fp64')],
  ['I64', rawDtype(64, '64-bit integers')],
  ['U64', rawDtype(64, '64-bit unsigned integers')],
]);

/** The dtype a format is written as. tf32 has none of its own: F32, with a note in the metadata. */
export const safetensorsDtypeOf: Readonly<Record<FormatName, string>> = {
  fp64: 'F64',
  fp32: 'F32',
  tf32: 'F32',
  bf16: 'BF16',
  fp16: 'F16',
  e4m3: 'F8_E4M3',
  e5m2: 'F8_E5M2',
};

/** The longest header, in bytes; the reference implementation's own limit. */
export const maxHeaderBytes = 100_000_000;
