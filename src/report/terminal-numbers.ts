import { formatNumber } from '../audit/index.js';

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
