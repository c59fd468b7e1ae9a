import type { BreakExample, DomainReport, FunctionReport } from '../error-report.js';
import type { InputView } from '../input-view.js';
import { digits, float32Text, grouped } from './numbers.js';
import { alignTextColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

/** Digits of an exact value: its relative error is below 2^-50. */
const exactDigits = 15;
/** How many of a list are printed; the JSON document has all. */
const shown = 2;

/** "0xc0000000 = -2" */
function inputText({ inputBits, input }: InputView): string {
  return `${inputBits} = ${float32Text(input)}`;
}

function resultText({ resultBits, result }: InputView): string {
  return `${resultBits} = ${float32Text(result)}`;
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
        `${digits(example.error, 6)}${unit}`,
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
      grouped(count),
      ...(count === 0
        ? []
        : [digits(largest[0]?.ulps ?? null, 4), breakText(largest[0] ?? first[0])]),
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
