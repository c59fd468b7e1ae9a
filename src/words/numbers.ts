/** Three significant digits, without an exponent where that reads well. */
export function formatNumber(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}

/**
 * Two numbers in as many digits as it takes to tell them apart: two of their difference, and three of
 * the larger at least.
 */
export function formatApart(a: number, b: number): readonly [string, string] {
  const difference = Math.abs(a - b);
  const leading = Math.floor(Math.log10(Math.max(Math.abs(a), Math.abs(b))));
  const digits = leading - Math.floor(Math.log10(difference)) + 2;
  if (!(Number.isFinite(difference) && difference > 0 && digits > 3))
    return [formatNumber(a), formatNumber(b)];
  const show = (value: number) =>
    leading >= -3 && leading < 5
      ? value.toFixed(Math.min(Math.max(digits - 1 - leading, 0), 20))
      : value.toExponential(Math.min(digits, 17) - 1);
  return [show(a), show(b)];
}

/** Two significant digits, as of numbers that are compared by their size. */
export function formatRoughly(value: number): string {
  return String(Number(value.toPrecision(2)));
}

/** Above this multiple of what is allowed, a use reads better as a multiple than in percent. */
const largestPercentage = 10;

/** A share as "12.3 %", from 1000 % on as "12.3 ×"; non-finite ones without a unit. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return String(share);
  return share < largestPercentage ? `${formatNumber(100 * share)} %` : `${formatNumber(share)} ×`;
}

/** |found| / allowed, with nothing found using nothing of whatever is allowed. */
export function shareUsed(found: number, allowed: number): number {
  return found === 0 ? 0 : Math.abs(found) / allowed;
}

/** A positive number as "2^-44.2", one decimal; zero as "0". */
export function formatPowerOfTwo(value: number): string {
  return value > 0 && Number.isFinite(value)
    ? `2^${Number(Math.log2(value).toFixed(1))}`
    : formatNumber(value);
}

/** A cosine: near one as its distance to one, "1 - 2.3e-6". */
export function formatCosine(similarity: number): string {
  const distance = 1 - similarity;
  if (!(Math.abs(distance) < 0.1)) return formatNumber(similarity);
  if (distance === 0) return '1';
  return `1 ${distance > 0 ? '-' : '+'} ${formatNumber(Math.abs(distance))}`;
}

/** "1 head", "2 heads"; with thousands left as they are, so that a number can be searched for. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

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
