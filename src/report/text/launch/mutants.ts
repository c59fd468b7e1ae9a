import type { MutantResults } from '../../../jobs/index.js';
import {
  type JudgedMutant,
  type MutantKind,
  type MutantVerdict,
  mutantVerdicts,
} from '../../../ptx/mutants/index.js';
import { formatGrouped, formatGroupedCount, plainText } from '../../../words/index.js';
import { alignColumns } from '../../layout/index.js';

const kinds: Readonly<Record<MutantKind, string>> = {
  remove: 'removed',
  weaken: 'weakened',
  move: 'moved',
};
const verdicts = Object.keys(mutantVerdicts) as readonly MutantVerdict[];

/** Verdicts whose mutants are all listed: no finding caught them, or not at once. */
const listed = verdicts.filter((verdict) => verdict !== 'found' && verdict !== 'hangs');

/** Number of mutants of each kind by verdict; verdicts that none had are left out. */
function countLines(judged: readonly JudgedMutant[]): readonly string[] {
  const had = verdicts.filter((verdict) => judged.some((one) => one.verdict === verdict));
  const row = (name: string, some: readonly JudgedMutant[]) => [
    name,
    ...had.map((verdict) => formatGrouped(some.filter((one) => one.verdict === verdict).length)),
    formatGrouped(some.length),
  ];
  return alignColumns([
    ['', ...had, 'all'],
    ...Object.entries(kinds).map(([kind, name]) =>
      row(
        name,
        judged.filter((one) => one.kind === kind),
      ),
    ),
    row('all', judged),
  ]);
}

/** Details of a mutant beside its change. */
function detailOf({ verdict, schedule, findings, reason, isOverlooked }: JudgedMutant): string {
  if (verdict !== 'changes the result' && !isOverlooked) return '';
  const kindsFound = [...new Set(findings.map(({ kind }) => kind))];
  const shown = [...kindsFound, ...(reason === null ? [] : [reason])].join(', ');
  const where = schedule === null ? '' : ` in the schedule ${schedule}`;
  return ` (${plainText(shown)}${where})`;
}

/** A change in few words: for a move only the line. */
function shortChange(change: string): string {
  return change.replace(/^((?:before|after) line \d+):.*/, '$1');
}

/** Mutants, with those of one instruction on one line. */
function mutantLines(mutants: readonly JudgedMutant[]): readonly string[] {
  const changes = new Map<string, string[]>();
  for (const mutant of mutants) {
    const { line, mnemonic, change } = mutant;
    const site = `line ${line}: ${plainText(mnemonic)}`;
    const told = `${plainText(shortChange(change))}${detailOf(mutant)}`;
    changes.set(site, [...(changes.get(site) ?? []), told]);
  }
  return [...changes].map(([site, told]) => `  ${site}: ${told.join(', ')}`);
}

/** Mutants with a verdict, by the reasons for it. */
function verdictLines(verdict: MutantVerdict, judged: readonly JudgedMutant[]): readonly string[] {
  const some = judged.filter((one) => one.verdict === verdict);
  if (some.length === 0) return [];
  const head = `${formatGrouped(some.length)} ${verdict}: ${mutantVerdicts[verdict]}`;
  const hasOwnReasons =
    verdict === 'not shown' || verdict === 'not modelled' || verdict === 'out of time';
  if (!hasOwnReasons) return ['', head, ...mutantLines(some)];
  const reasons = [...new Set(some.map(({ reason }) => reason ?? ''))];
  return [
    '',
    head,
    ...reasons.flatMap((reason) => [
      ` ${plainText(reason)}:`,
      ...mutantLines(some.filter((one) => (one.reason ?? '') === reason)),
    ]),
  ];
}

/** The outcome of the mutants of a compiled kernel, as text. */
export function renderMutants(results: MutantResults): string {
  const { mutants, instructions, judged, ownFindings, seconds } = results;
  const some =
    judged.length === mutants
      ? formatGroupedCount(mutants, 'mutant')
      : `${formatGrouped(judged.length)} of ${formatGroupedCount(mutants, 'mutant')}`;
  const overlooked = judged.filter(({ isOverlooked }) => isOverlooked);
  const own =
    ownFindings === 0
      ? []
      : [
          `The kernel itself has ${formatGroupedCount(ownFindings, 'finding')}: the same at the same lines count for no mutant, and nothing is shown to be redundant.`,
        ];
  const overlookedLines =
    overlooked.length === 0
      ? []
      : [
          '',
          `${formatGrouped(overlooked.length)} overlooked: a run claims to speak for all schedules, and another schedule shows otherwise. Please report this.`,
          ...mutantLines(overlooked),
        ];
  return [
    `Mutants: ${some} of ${formatGroupedCount(instructions, 'instruction')} that order others, each run alone, in ${seconds.toFixed(0)} s`,
    ...own,
    '',
    ...countLines(judged),
    ...overlookedLines,
    ...listed.flatMap((verdict) => verdictLines(verdict, judged)),
    '',
  ].join('\n');
}
