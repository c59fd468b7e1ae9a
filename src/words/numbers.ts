/** Three significant digits, without an exponent where that reads well. */
export function formatNumber(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}

/**
 * Two numbers with as many digits as distinguish them: two of their difference, and three of the larger
 * at least.
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

/** Two significant digits with an exponent, "1.2e-7"; zero as "0". */
export function formatScientific(value: number): string {
  return value === 0 ? '0' : value.toExponential(1);
}

/** A number with `count` significant digits, with an exponent where that is shorter; "-" for null. */
export function formatDigits(value: number | null, count = 4): string {
  if (value === null) return '-';
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const size = Math.abs(value);
  const plain = size >= 1e-3 && size < 1e6;
  return plain ? String(Number(value.toPrecision(count))) : value.toExponential(count - 1);
}

/** The most digits needed to distinguish two fp64 numbers. */
const mostDigits = 17;

/** All the digits that are certain of a number that may be off by `certainty`; "-" for null. */
export function formatCertainDigits(value: number | null, certainty: number): string {
  if (value === null || value === 0 || !Number.isFinite(value)) return formatDigits(value);
  const count = Math.floor(Math.log10(Math.abs(value) / certainty));
  return formatDigits(value, Math.min(Math.max(count, 1), mostDigits));
}

/** Significant digits that distinguish every fp32 number from every other. */
const float32Digits = 9;

/** An fp32 number with as many digits as distinguish it from every other. */
export function formatFloat32(value: number): string {
  if (Object.is(value, -0)) return '-0';
  if (value === 0 || !Number.isFinite(value)) return String(value);
  let count = 1;
  while (count < float32Digits && Math.fround(Number(value.toPrecision(count))) !== value) count++;
  const shortest = Number(value.toPrecision(count));
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e7 ? String(shortest) : shortest.toExponential();
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

/** |found| / allowed, where 0 / 0 is 0: nothing found uses nothing. */
export function shareUsed(found: number, allowed: number): number {
  return found === 0 ? 0 : Math.abs(found) / allowed;
}

/** Multiple of an allowance above which its use reads better as a multiple than in percent. */
const largestPercentage = 10;

/** The share used of an allowance: "12.3 %", from 1000 % on "12.3 ×"; non-finite ones without a unit. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return String(share);
  return share < largestPercentage ? `${formatNumber(100 * share)} %` : `${formatNumber(share)} ×`;
}

/** The share used of an allowance, for readers: "12.3 %" up to all of it, and "beyond" above that. */
export function formatUse(share: number): string {
  return share > 1 ? 'beyond' : formatShare(share);
}

/** A part of a whole in percent with one decimal and no unit, "12.3"; a part that rounds to zero has no sign. */
export function formatTenths(share: number): string {
  const text = (100 * share).toFixed(1);
  return text === '-0.0' ? '0.0' : text;
}

/** A part of a whole in percent, four significant digits, never rounded to 0 or to 100; "-" for null. */
export function formatPercentage(share: number | null): string {
  if (share === null) return '-';
  if (share === 0) return '0 %';
  if (share === 1) return '100 %';
  const text = formatDigits(100 * share);
  return `${text === '100' ? (100 * share).toPrecision(9) : text} %`;
}

/** "1 head", "2 heads"; with thousands left as they are, so that a number can be searched for. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A whole number in groups of three digits, "65,536". */
export function formatGrouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** A number of things, in groups of three digits: "65,536 inputs". */
export function formatGroupedCount(count: number, one: string, many = `${one}s`): string {
  return `${formatGrouped(count)} ${count === 1 ? one : many}`;
}

const prefixes: readonly (readonly [factor: number, prefix: string])[] = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
  [1, ''],
  [1e-3, 'm'],
  [1e-6, 'µ'],
];

const scaledDigits = 3;

/** A positive number with three significant digits and an SI prefix: `2.81 G`. */
export function formatScaled(value: number): string {
  const rounded = Number(value.toPrecision(scaledDigits));
  const [factor, prefix] = prefixes.find(([f]) => rounded >= f) ?? prefixes[prefixes.length - 1];
  return `${(rounded / factor).toPrecision(scaledDigits)} ${prefix}`.trim();
}

/** A positive number with its unit: `2.81 G elements/s`, `98.5 ms`. */
export function formatQuantity(value: number, unit: string): string {
  const symbol = unit.replace(/^bytes/, 'B');
  const scaled = formatScaled(value);
  const joined = symbol.length <= 3 && /[a-zµ]$/i.test(scaled);
  return joined ? `${scaled}${symbol}` : `${scaled} ${symbol}`;
}
