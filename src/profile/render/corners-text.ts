import type { CornerReport, CornerResult } from '../corners.js';
import { counted, float32Text, grouped } from './numbers.js';
import { alignTextColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

/** A result, zeros and infinities with their sign. */
function signed(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '+0';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : '+inf';
  return float32Text(value);
}

/** What a function delivers, in words. */
export function cornerText(result: CornerResult, inputs: number): string {
  const { constantBits, least, most, zeros, subnormals, infinities, nans } = result;
  if (least === null || most === null) return 'NaN';
  if (constantBits !== null)
    return zeros > 0 || infinities > 0 ? signed(least) : `${float32Text(least)} (${constantBits})`;
  const parts = [
    ...(subnormals === inputs ? ['all subnormal'] : []),
    ...(zeros > 0 ? [`${grouped(zeros)} zeros`] : []),
    ...(subnormals > 0 && subnormals < inputs ? [`${grouped(subnormals)} subnormal`] : []),
    ...(infinities > 0 ? [`${grouped(infinities)} infinite`] : []),
    ...(nans > 0 ? [`${grouped(nans)} NaN`] : []),
  ];
  const range = `${signed(least)} to ${signed(most)}`;
  return parts.length === 0 ? range : `${range}; ${parts.join(', ')}`;
}

/** Consecutive functions with the same text share a row. */
function grouping(results: readonly (readonly [name: string, text: string])[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const [name, text] of results) groups.set(text, [...(groups.get(text) ?? []), name]);
  return [...groups].map(([text, names]) => [namesText(names), text]);
}

/** "degree 1, 2 and 3" instead of the word each time. */
function namesText(names: readonly string[]): string {
  const degrees = names.filter((name) => name.startsWith('degree '));
  const others = names.filter((name) => !name.startsWith('degree '));
  const numbers = degrees.map((name) => name.replace('degree ', ''));
  const joined = numbers.length === 0 ? [] : [`degree ${numbers.join(', ')}`];
  return [...others, ...joined].join(', ');
}

/** What every function does in every part of the input range. */
export function cornersText(corners: readonly CornerReport[]): string[] {
  const blocks = corners.flatMap(({ label, inputs, exact, results }) => [
    `  ${label}: ${counted(inputs, 'input')}, where the exact result is ${exact}`,
    ...alignTextColumns(
      grouping(results.map((result) => [result.name, cornerText(result, inputs)])),
      terminalWidth,
    ).map((line) => `  ${line}`),
  ]);
  return ['Every input, by where the function changes its ways', '', ...blocks, ''];
}
