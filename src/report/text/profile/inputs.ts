import type {
  BreakExample,
  CornerReport,
  CornerResult,
  DomainReport,
  FunctionReport,
  InputView,
} from '../../../profile/index.js';
import {
  formatGroupedCount,
  formatDigits,
  formatFloat32,
  formatGrouped,
} from '../../../words/index.js';
import { alignTextColumns } from '../../layout/index.js';
import { terminalWidth } from './head.js';

/** Number of digits of an exact value: its relative error is below 2^-50. */
const exactDigits = 15;
/** Number of entries of a list that are printed; the JSON document has all. */
const shown = 2;

/** "0xc0000000 = -2" */
function inputText({ inputBits, input }: InputView): string {
  return `${inputBits} = ${formatFloat32(input)}`;
}

function resultText({ resultBits, result }: InputView): string {
  return `${resultBits} = ${formatFloat32(result)}`;
}

/** The worst inputs of each function in fp32: by the first measure's error, then by ulps. */
export function worstInputsText({ label, functions }: DomainReport): string[] {
  const rows = functions.flatMap(({ name, measures }: FunctionReport) => {
    const [{ largest, largestUlp }] = measures;
    const row =
      (unit: string) =>
      (example: InputView & { readonly error: number }): string[] => [
        name,
        inputText(example),
        resultText(example),
        example.exact.toPrecision(exactDigits),
        `${formatDigits(example.error, 6)}${unit}`,
      ];
    return [...largest.slice(0, shown).map(row('')), ...largestUlp.slice(0, 1).map(row(' ulps'))];
  });
  return [
    `Worst inputs, fp32, ${label}`,
    '',
    ...alignTextColumns([['', 'x', 'result', 'reference', 'error'], ...rows], terminalWidth),
    '',
  ];
}

function breakText({ smaller, larger }: BreakExample): string {
  return `${inputText(smaller)}: ${smaller.resultBits}, then ${larger.resultBits}`;
}

/** Breaks of monotonicity of each function in fp32. */
export function breaksText({ label, functions }: DomainReport): string[] {
  const rows = functions.map(({ name, measures }: FunctionReport) => {
    const { count, largest, first } = measures[0].breaks;
    return [
      name,
      formatGrouped(count),
      ...(count === 0
        ? []
        : [formatDigits(largest[0]?.ulps ?? null, 4), breakText(largest[0] ?? first[0])]),
    ];
  });
  const firsts = functions
    .filter(({ measures }) => measures[0].breaks.count > 0)
    .map(({ name, measures }) => [name, ...measures[0].breaks.first.slice(0, 3).map(breakText)]);
  return [
    `Breaks of monotonicity, fp32, ${label}`,
    '',
    ...alignTextColumns([['', 'count', 'largest, ulps', 'at'], ...rows], terminalWidth),
    ...(firsts.length === 0
      ? []
      : ['', '  the first:', ...alignTextColumns(firsts, terminalWidth)]),
    '',
  ];
}

/** A result, zeros and infinities with their sign. */
function signed(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '+0';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : '+inf';
  return formatFloat32(value);
}

/** The results of a function, in words. */
function cornerText(result: CornerResult, inputs: number): string {
  const { constantBits, least, most, zeros, subnormals, infinities, nans } = result;
  if (least === null || most === null) return 'NaN';
  if (constantBits !== null)
    return zeros > 0 || infinities > 0
      ? signed(least)
      : `${formatFloat32(least)} (${constantBits})`;
  const parts = [
    ...(subnormals === inputs ? ['all subnormal'] : []),
    ...(zeros > 0 ? [`${formatGrouped(zeros)} zeros`] : []),
    ...(subnormals > 0 && subnormals < inputs ? [`${formatGrouped(subnormals)} subnormal`] : []),
    ...(infinities > 0 ? [`${formatGrouped(infinities)} infinite`] : []),
    ...(nans > 0 ? [`${formatGrouped(nans)} NaN`] : []),
  ];
  const range = `${signed(least)} to ${signed(most)}`;
  return parts.length === 0 ? range : `${range}; ${parts.join(', ')}`;
}

/** Consecutive functions with the same text, joined in one row. */
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

/** The results of every function in every part of the input range. */
export function cornersText(corners: readonly CornerReport[]): string[] {
  const blocks = corners.flatMap(({ label, inputs, exact, results }) => [
    `  ${label}: ${formatGroupedCount(inputs, 'input')}, where the exact result is ${exact}`,
    ...alignTextColumns(
      grouping(results.map((result) => [result.name, cornerText(result, inputs)])),
      terminalWidth,
    ).map((line) => `  ${line}`),
  ]);
  return ['Every input, by where the function changes its ways', '', ...blocks, ''];
}
