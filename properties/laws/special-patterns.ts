import { encode, formats, type Bits, type FormatName } from '../../src/formats/index.js';

/** The special values of a format, NaN first: e4m3 has no infinity. */
export function specialValuesOf(name: FormatName): readonly number[] {
  return formats[name].specials === 'ieee' ? [NaN, Infinity, -Infinity] : [NaN];
}

/** The bits of a special value that the format has. */
export function specialBits(name: FormatName, value: number): Bits {
  const format = formats[name];
  return Number.isNaN(value) ? format.canonicalNan : encode(format, value);
}
