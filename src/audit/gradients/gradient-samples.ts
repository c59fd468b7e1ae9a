import { listed } from '../../words/index.js';
import { problemShape, quantities, rowElements, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import {
  chooseKeys,
  chooseRows,
  sampledProblem,
  sampledQuantity,
  type KeySample,
  type KeySampleRequest,
  type RowSample,
  type RowSampleRequest,
} from '../rows/index.js';
import {
  gradientQuantities,
  judgedGradients,
  outputGradient,
  type JudgedGradientName,
} from './gradient-quantities.js';
import type { GradientTensors } from './gradient-tensors.js';
import type { GivenJudged } from './judge-gradient.js';

/** Gradients that are judged together: of all rows and keys, of some rows, or of some keys. */
export interface GradientPart {
  /** The problem, or the rows of it that are judged, with dO and the forward's outputs of these. */
  readonly problem: Problem;
  readonly tensors: GradientTensors;
  readonly names: readonly JudgedGradientName[];
  /** The keys that dK and dV are judged of; null for all. */
  readonly keys: KeySample | null;
  readonly isSample: boolean;
  /** Takes the part's gradients from all that were given, in the part's own shape. */
  readonly takenOf: (all: readonly GivenJudged[]) => readonly GivenJudged[];
}

/** The parts of a problem's gradients that are judged, and the samples. */
export interface GradientPlan {
  readonly parts: readonly GradientPart[];
  readonly rows: RowSample | null;
  readonly keys: KeySample | null;
}

const ofRows = ['dq'] as const;
const ofKeys = ['dk', 'dv'] as const;
const [output, logSumExp] = quantities;
const [queryGradient] = gradientQuantities;

/** Some rows of all heads, the same number of each; in the order of the selection. */
function gathered(
  values: Float64Array,
  heads: number,
  columns: number,
  selection: Int32Array,
): Float64Array {
  const ofHead = selection.length / heads;
  const rows = values.length / columns / heads;
  const taken = new Float64Array(selection.length * columns);
  selection.forEach((row, at) => {
    const from = (Math.floor(at / ofHead) * rows + row) * columns;
    taken.set(values.subarray(from, from + columns), at * columns);
  });
  return taken;
}

function withNames(all: readonly GivenJudged[], names: readonly JudgedGradientName[]) {
  return all.filter(({ quantity }) => names.includes(quantity.name));
}

/** dQ of a sample of rows. */
function rowsPart(problem: Problem, tensors: GradientTensors, sample: RowSample): GradientPart {
  const shape = problemShape(problem);
  const { dout, out, lse } = tensors;
  return {
    problem: sampledProblem(problem, shape, sample),
    tensors: {
      dout: sampledQuantity(outputGradient, dout, shape, sample),
      ...(out && { out: sampledQuantity(output, out, shape, sample) }),
      ...(lse && { lse: sampledQuantity(logSumExp, lse, shape, sample) }),
    },
    names: ofRows,
    keys: null,
    isSample: true,
    takenOf: (all) =>
      withNames(all, ofRows).map((one) => ({
        ...one,
        values: gathered(
          one.values,
          shape.batch * shape.heads,
          rowElements(queryGradient, shape),
          sample.selection.queries,
        ),
      })),
  };
}

/** dK and dV of a sample of keys. */
function keysPart(problem: Problem, tensors: GradientTensors, sample: KeySample): GradientPart {
  const shape = problemShape(problem);
  return {
    problem,
    tensors,
    names: ofKeys,
    keys: sample,
    isSample: true,
    takenOf: (all) =>
      withNames(all, ofKeys).map((one) => ({
        ...one,
        values: gathered(
          one.values,
          shape.batch * shape.kvHeads,
          rowElements(one.quantity, shape),
          sample.selection,
        ),
      })),
  };
}

/** All rows, and all keys, of some gradients. */
function wholePart(
  problem: Problem,
  tensors: GradientTensors,
  names: readonly JudgedGradientName[],
): GradientPart {
  return {
    problem,
    tensors,
    names,
    keys: null,
    isSample: false,
    takenOf: (all) => withNames(all, names),
  };
}

/**
 * Plans the parts to judge. A sample of rows is of dQ, one of keys of dK and dV; a sample that would be all of them is
 * judged as a whole.
 * @throws RequestError for fewer rows or keys than heads, and for a problem that is itself a sample of rows
 */
export function planGradientParts(
  problem: Problem,
  tensors: GradientTensors,
  requests: {
    readonly rows?: RowSampleRequest | null;
    readonly keys?: KeySampleRequest | null;
  },
): GradientPlan {
  if (problem.rows !== undefined)
    throw new RequestError(
      'the problem is a sample of rows already, and every row adds to dK and dV; give the whole problem, and ask for a sample',
    );
  const shape = problemShape(problem);
  const whole = (names: readonly JudgedGradientName[]) => wholePart(problem, tensors, names);
  if (!requests.rows && !requests.keys) {
    const names = judgedGradients.map(({ name }) => name);
    return { parts: [whole(names)], rows: null, keys: null };
  }
  const rows = requests.rows ? chooseRows(problem, shape, requests.rows) : null;
  const keys = requests.keys ? chooseKeys(problem, shape, requests.keys) : null;
  const parts = [
    ...(!requests.rows ? [] : [rows === null ? whole(ofRows) : rowsPart(problem, tensors, rows)]),
    ...(!requests.keys ? [] : [keys === null ? whole(ofKeys) : keysPart(problem, tensors, keys)]),
  ];
  return { parts, rows, keys };
}

/** The parts of the given gradients that samples leave out, a clause each. */
export function unsampled(
  { parts, rows, keys }: GradientPlan,
  all: readonly GivenJudged[],
): string[] {
  const names = parts.flatMap((part) => part.names);
  const proseOf = (some: readonly GivenJudged[]) =>
    listed(some.map(({ quantity }) => quantity.prose));
  const left = all.filter(({ quantity }) => !names.includes(quantity.name));
  const [some, others] = [withNames(all, ofRows), withNames(all, ofKeys)];
  return [
    ...(left.length === 0
      ? []
      : [`${proseOf(left)}, since a sample of rows judges dQ, and one of keys dK and dV`]),
    ...(rows === null || some.length === 0
      ? []
      : [`dQ of ${rows.of - rows.rows} of ${rows.of} rows, which are not in the sample`]),
    ...(keys === null || others.length === 0
      ? []
      : [
          `${proseOf(others)} of ${keys.of - keys.keys} of ${keys.of} keys, which are not in the sample`,
        ]),
  ];
}
