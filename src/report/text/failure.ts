import {
  describeCausePlace,
  describePlace,
  nearestClause,
  type ElementTest,
  type NumberTest,
} from '../../audit/index.js';
import { formatApart, formatNumber, plainText, shareUsed } from '../../words/index.js';
import { fromReported, type FileReport } from '../json/index.js';
import { heading, type Section } from '../layout/index.js';

/** The element or row of a quantity that uses most of its bound. */
export interface WorstRow {
  /** Name of the quantity. */
  readonly name: string;
  readonly share: number;
  readonly text: string;
  /** Where it is, what the kernel gave, and what it may at most be off the exact value; null where that is not finite. */
  readonly numbers: Readonly<Record<'where' | 'got' | 'exact' | 'bound', string>> | null;
}

type Named = { readonly name: string; readonly label: string };

/** The first element or row of a quantity that is NaN or infinite and must not be, or the reverse; else the worst. */
function worstRow(
  { name, label }: Named,
  { firstNonFinite, worst }: Pick<ElementTest | NumberTest, 'firstNonFinite' | 'worst'>,
): WorstRow[] {
  if (firstNonFinite !== null) {
    const found =
      'at' in firstNonFinite
        ? `${describePlace(firstNonFinite.at)}: got ${firstNonFinite.value}, exact ${firstNonFinite.oracle}`
        : `${describePlace(firstNonFinite)}: NaN or infinite where a correct kernel is not, or the reverse`;
    return [{ name, share: Infinity, text: `${label} at ${found}`, numbers: null }];
  }
  if (worst === null) return [];
  const { at, value, oracle, bound } = worst;
  const [got, exact] = formatApart(value, oracle);
  const numbers = {
    where: `${label} at ${describePlace(at)}`,
    got,
    exact,
    bound: formatNumber(bound),
  };
  const text = `${numbers.where}: got ${got}, exact ${exact}, bound ± ${numbers.bound}`;
  return [{ name, share: shareUsed(value - oracle, bound), text, numbers }];
}

/** The worst element or row of each judged quantity. */
function worstRows(report: FileReport): WorstRow[] {
  // The findings of links name their parts themselves.
  if (report.kind === 'link-audit' || report.kind === 'chain-audit') return [];
  if (report.kind === 'recurrent-audit')
    return report.quantities.flatMap((quantity) =>
      worstRow(quantity, fromReported<ElementTest>(quantity.elements)),
    );
  const { outputs, gradients } = report;
  return [
    ...(outputs ?? []).flatMap((output) =>
      worstRow(
        output,
        output.row === 'vector'
          ? fromReported<ElementTest>(output.elements)
          : fromReported<NumberTest>(output.numbers),
      ),
    ),
    ...(gradients?.gradients ?? []).flatMap((gradient) =>
      worstRow(gradient, fromReported<ElementTest>(gradient.elements)),
    ),
  ];
}

/** The worst row of the quantity that the first finding is about; of all quantities where it is about none. */
export function worstRowOf(report: FileReport): WorstRow | null {
  const quantity = report.verdict.findings[0]?.quantity ?? null;
  const all = worstRows(report);
  const own = all.filter(({ name }) => name === quantity);
  const [first, ...others] = own.length === 0 ? all : own;
  if (first === undefined) return null;
  return others.reduce((most, row) => (row.share > most.share ? row : most), first);
}

/** That row in words; null for none. */
export function worstRowText(report: FileReport): string | null {
  return worstRowOf(report)?.text ?? null;
}

/** The place of a failure, if its sentence does not state it; null where that is not known or everywhere. */
export function placeText({ verdict: { diagnosis, sentence } }: FileReport): string | null {
  const place = diagnosis?.place ?? null;
  const text = place === null ? 'everywhere' : describeCausePlace(place);
  return text === 'everywhere' || sentence.includes(text) ? null : text;
}

/** The nearest cause, if the verdict's sentence does not tell it, where none is named and the premise says nothing either; null for none. */
export function nearestText({
  verdict: { diagnosis, premise, sentence },
}: FileReport): string | null {
  const candidates = diagnosis !== null && 'candidates' in diagnosis ? diagnosis.candidates : [];
  const nearest = premise === null ? nearestClause(candidates) : null;
  return nearest === null || sentence.includes(nearest) ? null : nearest;
}

/** Details of a failure behind its sentence: its place, the nearest cause, and the worst row. */
export function failureSection(report: FileReport): Section | null {
  if (report.verdict.pass || report.verdict.findings.length === 0) return null;
  const rows = (
    [
      ['Place', placeText(report)],
      ['Nearest cause', nearestText(report)],
      ['Worst row', worstRowText(report)],
    ] as const
  ).flatMap(([name, text]) => (text === null ? [] : [[heading(name), plainText(text)]]));
  return rows.length === 0 ? null : { rows, numberColumns: 0 };
}
