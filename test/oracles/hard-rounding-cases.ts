import type { FormatName } from '../../src/formats/index.js';

/** An fp32 input whose function value lies next to a place where rounding to a format changes. */
export interface HardCase {
  /** The fp32 bit pattern of the input. */
  readonly bits: number;
  readonly format: FormatName;
  /** The number of the format, or midpoint of two, that the function value nearly is. */
  readonly near: number;
  /** The function value's relative distance from it is below 2^-bitsOfDistance. */
  readonly bitsOfDistance: number;
}

/**
 * The hardest of all fp32 inputs: every one from 2^-26 in magnitude to the overflow and underflow of
 * 2^x, and every positive finite one for log2, was evaluated in fp64, and the nearest to a boundary
 * of each format (integer x and powers of two aside, whose results are exact) measured with MPFR. The
 * logarithms of one significand in neighbouring binades are equally hard; one or two stand for all.
 */
export const hardCases: Readonly<Record<'exp2' | 'log2', readonly HardCase[]>> = {
  exp2: [
    { bits: 0xb52d1f9a, format: 'fp32', near: 0.9999995529651642, bitsOfDistance: 58 },
    { bits: 0xbcf3a937, format: 'fp32', near: 0.9795942604541779, bitsOfDistance: 56 },
    { bits: 0xb8d3d026, format: 'fp32', near: 0.9999299943447113, bitsOfDistance: 53 },
    { bits: 0x3b429d37, format: 'fp32', near: 1.0020604729652405, bitsOfDistance: 53 },
    { bits: 0xbaec2b40, format: 'fp32', near: 0.9987518489360809, bitsOfDistance: 53 },
    { bits: 0xb6a477af, format: 'fp32', near: 0.9999966025352478, bitsOfDistance: 52 },
    { bits: 0xb50a7fae, format: 'fp32', near: 0.9999996423721313, bitsOfDistance: 51 },
    { bits: 0x3ea7097a, format: 'fp32', near: 1.253745198249817, bitsOfDistance: 51 },
    { bits: 0xbf2c7b43, format: 'fp32', near: 0.6268725991249084, bitsOfDistance: 51 },
    { bits: 0xbd1094c9, format: 'fp16', near: 0.975830078125, bitsOfDistance: 38 },
    { bits: 0xbe4ec799, format: 'fp16', near: 0.869384765625, bitsOfDistance: 38 },
    { bits: 0x3dd4e04b, format: 'fp16', near: 1.07470703125, bitsOfDistance: 38 },
    { bits: 0xbbb906ce, format: 'bf16', near: 0.99609375, bitsOfDistance: 37 },
    { bits: 0xbb38d875, format: 'bf16', near: 0.998046875, bitsOfDistance: 35 },
  ],
  log2: [
    { bits: 0x3ea07ab9, format: 'fp32', near: -1.6737558245658875, bitsOfDistance: 51 },
    { bits: 0x002452a4, format: 'fp32', near: -127.81719589233398, bitsOfDistance: 51 },
    { bits: 0x2fd54996, format: 'fp32', near: -31.263344764709473, bitsOfDistance: 50 },
    { bits: 0x00c31c85, format: 'fp32', near: -125.391845703125, bitsOfDistance: 50 },
    { bits: 0x1f914a90, format: 'fp32', near: -63.817195892333984, bitsOfDistance: 50 },
    { bits: 0x3f207ab9, format: 'fp32', near: -0.6737558245658875, bitsOfDistance: 50 },
    { bits: 0x2fe2055b, format: 'fp16', near: -31.1796875, bitsOfDistance: 43 },
    { bits: 0x3fc31c85, format: 'fp16', near: 0.608154296875, bitsOfDistance: 42 },
    { bits: 0x3de2055b, format: 'bf16', near: -3.1796875, bitsOfDistance: 40 },
    { bits: 0x3f490b41, format: 'bf16', near: -0.3486328125, bitsOfDistance: 34 },
    { bits: 0x3bcbec15, format: 'bf16', near: -7.328125, bitsOfDistance: 33 },
  ],
};
