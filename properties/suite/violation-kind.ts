import type { AttentionKernel, LawCase, LawId } from '../laws/index.js';
import {
  mendableRun,
  mendedKernel,
  nonFiniteOutputs,
  rowsWithoutKeys,
  specialInputs,
  wrongLse,
  type Mend,
} from './mended-kernel.js';
import type { ResolvedPromises } from './promises.js';
import { runCase, type CaseResult } from './run-case.js';

/** The kind of a violation: violations of several laws have one cause where their kinds agree. */
export interface ViolationKind {
  /** Identifies the cause: equal for violations of one cause. */
  readonly id: string;
  /** The cause in a few words, as in "NaN on rows without keys"; without a full stop. */
  readonly title: string;
  /** Ids of other causes that it may have as well. */
  readonly equivalents: readonly string[];
}

/** Violations of one cause. */
export interface ViolationGroup<T> {
  readonly title: string;
  /** One at least, in the order given. */
  readonly violations: readonly T[];
}

/**
 * Violations grouped by their cause, the most common first: of all causes named, the one that fits most
 * violations takes these, and so on. Each violation is in one group.
 */
export function groupByKind<T>(
  violations: readonly T[],
  kindOf: (violation: T) => ViolationKind,
): ViolationGroup<T>[] {
  const fits = (violation: T, id: string) =>
    kindOf(violation).id === id || kindOf(violation).equivalents.includes(id);
  const groups: ViolationGroup<T>[] = [];
  for (let rest = [...violations]; rest.length > 0;) {
    const best = largest(rest, ({ id }) => rest.filter((other) => fits(other, id)), kindOf);
    groups.push({ title: commonTitle(best.map(kindOf)), violations: best });
    rest = rest.filter((violation) => !best.includes(violation));
  }
  return groups;
}

/** The longest list that a violation's kind is given, the first of equals. */
function largest<T>(
  violations: readonly T[],
  of: (kind: ViolationKind) => T[],
  kindOf: (violation: T) => ViolationKind,
): T[] {
  return violations
    .map((violation) => of(kindOf(violation)))
    .reduce((best, next) => (next.length > best.length ? next : best));
}

/** The title of the most common kind, the first of equals. */
function commonTitle(kinds: readonly ViolationKind[]): string {
  const alike = kinds.map(({ id }) => kinds.filter((kind) => kind.id === id));
  return alike.reduce((best, next) => (next.length > best.length ? next : best))[0].title;
}

type Violated = CaseResult & { readonly status: 'violated' };

/** A violation, with its law and cases. */
interface FoundViolation {
  readonly law: LawId;
  /** The simplest case. */
  readonly lawCase: LawCase;
  /** The case as it was drawn, which shows more of the bug. */
  readonly drawn: LawCase;
  /** The result of the law on it. */
  readonly result: Violated;
  /** The diagnosis by an audit of the case as it was drawn; null for none. */
  readonly diagnosis: Violated['diagnosis'];
  /** Names of the causes that the audit's rows bear out. */
  readonly fitting: readonly string[];
}

/** Ways in which kernels are wrong, the more special first. */
const mends = [
  ['lse', wrongLse],
  ['special-inputs', specialInputs],
  ['non-finite', nonFiniteOutputs],
] as const satisfies readonly (readonly [id: string, mend: Mend])[];

/** The kind of a diagnosis. */
function diagnosed(id: string): string {
  return `diagnosis ${id}`;
}

/**
 * A kind that also has the causes as equivalents that an audit of the case as it was drawn bears out: a problem may fit several, of
 * which other laws' problems single one out.
 */
function withFitting(
  kind: ViolationKind,
  { diagnosis, fitting }: Pick<FoundViolation, 'diagnosis' | 'fitting'>,
): ViolationKind {
  const named = diagnosis === null ? [] : [diagnosis.id, ...diagnosis.equivalents];
  const ids = [...kind.equivalents, ...[...named, ...fitting].map(diagnosed)];
  return { ...kind, equivalents: [...new Set(ids)].filter((id) => id !== kind.id) };
}

/** Diagnoses of errors on rows without keys. */
const emptyRowDiagnoses = ['rows-without-keys-not-zero', 'lse-of-empty-rows'];

/**
 * Whether a kernel that is put right in one way obeys the law, or the law does not apply, on the simplest
 * case and on the one that was drawn: few numbers fit many corrections.
 */
async function holdsMended(
  { law, lawCase, drawn }: FoundViolation,
  kernel: AttentionKernel,
  promises: ResolvedPromises,
  mend: Mend,
): Promise<boolean> {
  const configurations = Object.fromEntries(
    Object.entries(promises.configurations).map(([name, configuration]) => [
      name,
      { ...configuration, kernel: mendedKernel(configuration.kernel, mend) },
    ]),
  );
  const mended = { ...promises, configurations };
  const kernelMended = mendedKernel(kernel, mend);
  for (const each of lawCase === drawn ? [lawCase] : [lawCase, drawn]) {
    const { status } = await runCase(law, each, kernelMended, mended, { diagnose: false });
    if (status !== 'held' && status !== 'inapplicable') return false;
  }
  return true;
}

/** The kind of a violation if putting the kernel right in one way makes the law hold; else null. */
async function kindByMend(
  found: FoundViolation,
  kernel: AttentionKernel,
  promises: ResolvedPromises,
  id: string,
  { mend, equivalents = [] }: { readonly mend: Mend; readonly equivalents?: readonly string[] },
): Promise<ViolationKind | null> {
  const title = found.result.runs
    .map((run) => mend.wrong(mendableRun(run)))
    .find((wrong) => wrong !== null);
  if (title === undefined) return null;
  const isCause = await holdsMended(found, kernel, promises, mend);
  return isCause ? { id, title, equivalents } : null;
}

/**
 * The kind of a violation by a kernel that did not compute, from the words of its fault; numbers in
 * these belong to the problem.
 */
export function faultKind(fault: string): ViolationKind {
  return { id: `fault ${fault.replaceAll(/\d+/g, '#')}`, title: fault, equivalents: [] };
}

/**
 * The kind of a violation. Rows without keys come first: where a kernel that writes O = 0 and an LSE of
 * −∞ for them obeys the law, and is the kernel otherwise, they are the cause. Then an audit's diagnosis;
 * then the same test with the LSE, with the results of special values, and with NaNs put right; then the
 * words of a kernel that fails to compute at all; else the law itself.
 */
export async function findKind(
  found: FoundViolation,
  kernel: AttentionKernel,
  promises: ResolvedPromises,
): Promise<ViolationKind> {
  const { fault } = found.result;
  if (fault !== null) return faultKind(fault);
  const kind = withFitting(await likeliestKind(found, kernel, promises), found);
  const others: string[] = [];
  // What an audit has diagnosed other laws may show by the same that has to be put right.
  if (kind.id.startsWith(diagnosed('')))
    for (const [id, mend] of mends)
      if ((await kindByMend(found, kernel, promises, id, { mend })) !== null) others.push(id);
  return { ...kind, equivalents: [...kind.equivalents, ...others] };
}

/** The kind of a violation by a kernel that computed. */
async function likeliestKind(
  found: FoundViolation,
  kernel: AttentionKernel,
  promises: ResolvedPromises,
): Promise<ViolationKind> {
  const { law, result, diagnosis } = found;
  const empty = await kindByMend(found, kernel, promises, 'rows-without-keys', {
    mend: rowsWithoutKeys,
    equivalents: emptyRowDiagnoses.map(diagnosed),
  });
  if (empty !== null) return empty;
  if (diagnosis !== null) {
    const { id, sentence } = diagnosis;
    return { id: diagnosed(id), title: sentence, equivalents: [] };
  }
  for (const [id, mend] of mends) {
    const kind = await kindByMend(found, kernel, promises, id, { mend });
    if (kind !== null) return kind;
  }
  return { id: `law ${law}`, title: result.statement, equivalents: [] };
}
