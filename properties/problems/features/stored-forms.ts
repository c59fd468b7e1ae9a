import {
  storedOf,
  storeProblem,
  type Problem,
  type StoredForm,
} from '../../../src/problem/index.js';
import { randomValues, type RandomValues } from '../values.js';
import { storageKinds, type FeatureKind } from './feature-kinds.js';
import { oneOf, shuffled, type FeatureRequest } from './feature-request.js';

/** Page sizes of servers, and some that no server has. */
const pageSizes: readonly number[] = [1, 2, 16, 64, 128, 256];

/** An order of the pages, the same for the same number of them. */
function shuffledPages(seed: number): (pages: number) => readonly number[] {
  return (pages) => {
    const order = Array.from({ length: pages }, (_, page) => page);
    return shuffled(order, randomValues(seed));
  };
}

/** Pages of any size, in any order, some of them unused, equal ones kept once or not. */
export function drawPages(random: RandomValues): Extract<StoredForm['keys'], { kind: 'paged' }> {
  const isUsual = random.integer(0, 3) > 0;
  const arrange =
    random.integer(0, 3) > 0 ? { arrange: shuffledPages(random.integer(0, 2 ** 30)) } : {};
  return {
    kind: 'paged',
    pageSize: isUsual ? oneOf(pageSizes, random) : random.integer(1, 40),
    spare: random.integer(0, 3),
    shared: random.integer(0, 1) === 0,
    ...arrange,
  };
}

function drawPadding(
  sequences: number,
  random: RandomValues,
  { hasLeft, headsFirst }: { readonly hasLeft: boolean; readonly headsFirst: boolean },
) {
  const left = Array.from({ length: sequences }, () => random.integer(0, 5));
  return {
    kind: 'padded',
    spare: random.integer(0, 3),
    headsFirst,
    ...(hasLeft && random.integer(0, 1) === 0 ? { left } : {}),
  } as const;
}

/** A form in which packed sequences are posed, for a kind of storage; null for sequences one behind the other. */
export function drawForm(
  kinds: readonly FeatureKind[],
  { random }: Pick<FeatureRequest, 'random'>,
  sequences: number,
): StoredForm | null {
  if (!kinds.includes('padded') && !kinds.includes('paged')) return null;
  const headsFirst = random.integer(0, 1) === 0;
  if (kinds.includes('padded'))
    return {
      queries: drawPadding(sequences, random, { hasLeft: false, headsFirst }),
      keys: drawPadding(sequences, random, { hasLeft: true, headsFirst }),
    };
  const queries =
    random.integer(0, 1) === 0
      ? ({ kind: 'packed', spare: random.integer(0, 2) } as const)
      : drawPadding(sequences, random, { hasLeft: false, headsFirst });
  return { queries, keys: drawPages(random) };
}

/** A plain form that a kernel takes, to pose a problem that comes in none; null for sequences one behind the other. */
function plainForm(features: readonly FeatureKind[]): StoredForm | null {
  if (features.includes('packed')) return null;
  if (features.includes('paged'))
    return { queries: { kind: 'padded' }, keys: { kind: 'paged', pageSize: 16 } };
  return features.includes('padded')
    ? { queries: { kind: 'padded' }, keys: { kind: 'padded' } }
    : null;
}

/**
 * A problem with packed sequences in a form that a kernel takes, if it is in none yet: that of the problem it was
 * made from, since a kernel may compute otherwise in another, for example by pages of another size.
 */
export function posedFor(problem: Problem, features: readonly FeatureKind[]): Problem {
  if (problem.sequences === undefined || storedOf(problem) !== null) return problem;
  const { stored } = problem;
  const before = stored?.of.sequences === problem.sequences ? stored?.form : undefined;
  const form = before ?? plainForm(features);
  return form === null ? problem : storeProblem(problem, form);
}

/** Whether a kernel takes sequences of different lengths, in some form. */
export function takesSequences(features: readonly FeatureKind[]): boolean {
  return storageKinds.some((kind) => features.includes(kind));
}

/** Simpler forms of a posed problem, plainest first; null for one behind the other. */
export function* simplerForms(
  form: StoredForm,
  features: readonly FeatureKind[],
): Generator<StoredForm | null> {
  const { queries, keys } = form;
  if (features.includes('packed')) yield null;
  const simplest = plainForm(features);
  if (simplest !== null && formComplexity(simplest) < formComplexity(form)) yield simplest;
  if ((queries.spare ?? 0) > 0) yield { ...form, queries: { ...queries, spare: 0 } };
  if ((keys.spare ?? 0) > 0) yield { ...form, keys: { ...keys, spare: 0 } };
  if (keys.kind === 'padded' && keys.left !== undefined) {
    const { left, ...rest } = keys;
    void left;
    yield { ...form, keys: rest };
  }
  if (keys.kind !== 'paged') return;
  const { arrange, ...inOrder } = keys;
  if (arrange !== undefined) yield { ...form, keys: inOrder };
  if (keys.shared === true) yield { ...form, keys: { ...keys, shared: false } };
  if (keys.pageSize > 1)
    yield { ...form, keys: { ...keys, pageSize: Math.floor(keys.pageSize / 2) } };
}

/** The complexity of a form; 0 for the plain one. */
export function formComplexity(form: StoredForm | undefined): number {
  if (form === undefined) return 0;
  const { queries, keys } = form;
  const spare = (queries.spare ?? 0) + (keys.spare ?? 0);
  if (keys.kind === 'padded') return 1 + spare + (keys.left === undefined ? 0 : 1);
  if (keys.kind === 'packed') return 1 + spare;
  return 2 + spare + keys.pageSize + (keys.arrange === undefined ? 0 : 1) + (keys.shared ? 1 : 0);
}
