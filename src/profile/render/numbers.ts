/** A whole number in groups of three digits. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** How many there are of something, in words. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A number with so many significant digits, with an exponent where that is shorter; `-` for null. */
export function digits(value: number | null, count = 4): string {
  if (value === null) return '-';
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const size = Math.abs(value);
  const plain = size >= 1e-3 && size < 1e6;
  return plain ? String(Number(value.toPrecision(count))) : value.toExponential(count - 1);
}

/** So many significant digits tell every fp32 number from every other. */
const float32Digits = 9;

/** An fp32 number with as many digits as tell it from every other. */
export function float32Text(value: number): string {
  if (Object.is(value, -0)) return '-0';
  if (value === 0 || !Number.isFinite(value)) return String(value);
  let count = 1;
  while (count < float32Digits && Math.fround(Number(value.toPrecision(count))) !== value) count++;
  const shortest = Number(value.toPrecision(count));
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e7 ? String(shortest) : shortest.toExponential();
}

const mostDigits = 17;

/** A number with all the digits that are certain when it may be off by `certainty`. */
export function certainDigits(value: number | null, certainty: number): string {
  if (value === null || value === 0 || !Number.isFinite(value)) return digits(value);
  const count = Math.floor(Math.log10(Math.abs(value) / certainty));
  return digits(value, Math.min(Math.max(count, 1), mostDigits));
}

/** A share as a percentage with four significant digits, never rounded to 0 or to 100. */
export function percentage(share: number | null): string {
  if (share === null) return '-';
  if (share === 0) return '0 %';
  if (share === 1) return '100 %';
  const text = digits(100 * share);
  return `${text === '100' ? (100 * share).toPrecision(9) : text} %`;
}

/** A number near a power of two, as 2^e with one decimal. */
export function powerOfTwo(value: number): string {
  return value === 0 ? '0' : `2^${Number(Math.log2(value).toFixed(1))}`;
}
