// AssemblyScript: the record of errors, whose layout is in ../record.ts, and its lists of extremes.

export const listLength: i32 = 4;
export const entryBytes: usize = 16;
export const histogramBins: i32 = 64;
/** The shifted bits of 2^-3: exponent field 1020 and one fraction bit. */
export const firstBin: i32 = 2040;

export const countsOffset: usize = 48;
export const extentOffset: usize = 104;
export const breakCountOffset: usize = 120;
export const largestScaledOffset: usize = 128;
export const largestUlpOffset: usize = 192;
export const largestBreakOffset: usize = 256;
export const firstBreakOffset: usize = 320;
export const histogramOffset: usize = 352;

/** Puts a value above 0 into the list, behind larger ones and those of smaller ordinals. */
export function insert(list: usize, value: f64, ordinal: f64): void {
  // Not a NaN either, which an infinite difference times 0 is.
  if (!(value > 0)) return;
  let place: i32 = listLength;
  while (place > 0) {
    const before = list + <usize>(place - 1) * entryBytes;
    const held = load<f64>(before);
    if (held > value || (held == value && load<f64>(before, 8) < ordinal)) break;
    place--;
  }
  if (place == listLength) return;
  const from = list + <usize>place * entryBytes;
  memory.copy(from + entryBytes, from, <usize>(listLength - 1 - place) * entryBytes);
  store<f64>(from, value);
  store<f64>(from, ordinal, 8);
}

export function insertCopies(list: usize, value: f64, ordinal: f64, copies: i32): void {
  for (let i = 0; i < min<i32>(copies, listLength); i++) insert(list, value, ordinal + <f64>i);
}

// @ts-ignore: decorator
@inline
export function smallestOf(list: usize): f64 {
  return load<f64>(list + <usize>(listLength - 1) * entryBytes);
}
