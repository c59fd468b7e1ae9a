import { selectPart, type PlainProblem, type Selection } from './plain-problem.js';
import type { ResolvedConstraints } from './problem-constraints.js';
import { sizeNames, type SizeName } from './sizes.js';

function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

/** Size below which elements are also dropped one by one, not just from the ends. */
const singlyUpTo = 8;

/**
 * Indices of a shorter axis, shortest first: from the front, from the back, without whole blocks, without
 * one element; as many as are multiples of a number.
 */
function* shorterAxes(
  size: number,
  min: number,
  block: number,
  multiple: number,
): Generator<number[]> {
  for (const unit of block < size - min && block % multiple === 0 ? [multiple, block] : [multiple])
    for (let units = Math.floor((size - min) / unit); units > 0; units = Math.floor(units / 2)) {
      const rest = units * unit;
      yield range(0, size - rest);
      yield range(rest, size - rest);
    }
  if (size > singlyUpTo || size <= min || multiple > 1) return;
  for (let left = 1; left < size - 1; left++) yield range(0, size).filter((i) => i !== left);
}

/** One size, or both head dimensions where they are listed: the ways to make it smaller. */
interface Axis {
  readonly sizes: readonly SizeName[];
  /** Boldest first; the first two are the least there may be, from the front and from the back. */
  readonly selections: readonly Selection[];
}

function sizeAxis(name: SizeName, plain: PlainProblem, constraints: ResolvedConstraints): Axis {
  const size = plain.sizes[name];
  const min = Math.min(constraints.sizes[name].min, size);
  const { blockKeys } = constraints.tiling;
  const multiple = constraints.multiples[name] ?? 1;
  const shorter = [...shorterAxes(size, min, blockKeys, multiple)];
  const selections = shorter.map((kept) => ({ [name]: kept }));
  return { sizes: [name], selections };
}

/** The query heads of a group cut to one of the listed numbers. */
function listedGroups({ sizes: { groupSize } }: PlainProblem, groupSizes: readonly number[]): Axis {
  const selections = groupSizes
    .filter((size) => size < groupSize)
    .flatMap((size) => [
      { groupSize: range(0, size) },
      { groupSize: range(groupSize - size, size) },
    ]);
  return { sizes: ['groupSize'], selections };
}

/** Both dimensions cut to one of the list. */
function listedDimensions({ sizes }: PlainProblem, dims: readonly number[]): Axis {
  const { qkDim, vDim } = sizes;
  const selections = dims
    .filter((dim) => dim <= Math.min(qkDim, vDim) && dim < Math.max(qkDim, vDim))
    .flatMap((dim) => [
      { qkDim: range(0, dim), vDim: range(0, dim) },
      { qkDim: range(qkDim - dim, dim), vDim: range(vDim - dim, dim) },
    ]);
  return { sizes: ['qkDim', 'vDim'], selections };
}

/** Every axis that can be made smaller. */
function shrinkableAxes(plain: PlainProblem, constraints: ResolvedConstraints): Axis[] {
  const { dims, groupSizes } = constraints;
  const isListed = (name: SizeName) =>
    (dims !== null && dimensions.includes(name)) || (groupSizes !== null && name === 'groupSize');
  const single = sizeNames.filter((name) => !isListed(name));
  return [
    ...single.map((name) => sizeAxis(name, plain, constraints)),
    ...(groupSizes === null ? [] : [listedGroups(plain, groupSizes)]),
    ...(dims === null ? [] : [listedDimensions(plain, dims)]),
  ].filter(({ selections }) => selections.length > 0);
}

const dimensions: readonly SizeName[] = ['qkDim', 'vDim'];

/** Sizes that a failure may need more of than the least; the others become the least together. */
const neededTogether: readonly (readonly SizeName[])[] = [
  [],
  ...sizeNames.map((name) => [name]),
  ['queries', 'keys'],
  ['queries', 'keys', ...dimensions],
];

/** The most queries that are tried alone. */
const mostAlone = 16;

/**
 * One query alone, seeing what it saw: masks are aligned to the last query and the last key, so as many
 * keys go from the end as queries do.
 */
function* singleQueries(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { queries, keys } = plain.sizes;
  const { multiples } = constraints;
  if (queries < 2 || constraints.sizes.queries.min > 1 || (multiples.queries ?? 1) > 1) return;
  const count = Math.min(queries, mostAlone);
  for (let i = 0; i < count; i++) {
    const query = Math.floor((i * queries) / count);
    const left = keys - (queries - 1 - query);
    if (left >= constraints.sizes.keys.min && left % (multiples.keys ?? 1) === 0)
      yield selectPart(plain, { queries: [query], keys: range(0, left) });
  }
}

/**
 * Parts of a problem that the constraints on sizes allow, boldest first: all sizes the least, all but
 * one or a few, one query as it is, then one size after the other, from its least to one less than it is.
 */
export function* smallerShapes(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const axes = shrinkableAxes(plain, constraints);
  const tried = new Set<string>();
  for (const needed of neededTogether) {
    const rest = axes.filter(({ sizes }) => !sizes.some((name) => needed.includes(name)));
    const key = rest.flatMap(({ sizes }) => sizes).join();
    if (rest.length < 2 || tried.has(key)) continue;
    tried.add(key);
    for (const end of [0, 1])
      yield selectPart(plain, Object.assign({}, ...rest.map(({ selections }) => selections[end])));
  }
  yield* singleQueries(plain, constraints);
  for (const { selections } of axes)
    for (const selection of selections) yield selectPart(plain, selection);
}
