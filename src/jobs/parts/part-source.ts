import {
  decodeQuantity,
  firstRowOf,
  headRows,
  partShape,
  type GivenQuantity,
  type KernelOutputs,
  type Part,
  type PartTensors,
} from '../../audit/index.js';
import { sliceRows } from '../../formats/index.js';
import { problemShape, quantities, type Problem, type Tensor } from '../../problem/index.js';
import { lazily } from '../../lazily.js';
import { share, unshare, type Shared } from './shared-values.js';

/** A problem with what a kernel gave for it, in memory that threads share. */
export interface SharedProblem {
  readonly problem: Shared<Problem>;
  readonly out: Shared<Tensor>;
  readonly lse: Shared<Tensor> | null;
}

/** Copies a problem, without how it was posed, to memory that threads share. */
export function shareInputs(problem: Problem): Shared<Problem> {
  // How it was posed says nothing of what is judged, and its tensors are as large.
  const judged = Object.entries(problem).filter(([name]) => name !== 'stored');
  return share(Object.fromEntries(judged) as unknown as Problem);
}

/** Copies a problem and outputs to memory that threads share. */
export function shareProblem(problem: Problem, { out, lse }: KernelOutputs): SharedProblem {
  return {
    problem: shareInputs(problem),
    out: share(out),
    lse: lse === null ? null : share(lse),
  };
}

const [outQuantity, lseQuantity] = quantities;

/** Makes a function that reads the parts of a shared problem. */
export function readShared({ problem, out, lse }: SharedProblem): (part: Part) => PartTensors {
  const whole = unshare(problem);
  const shape = problemShape(whole);
  const output = unshare(out);
  const ofLse = lazily(() =>
    lse === null ? null : decodeQuantity(lseQuantity, unshare(lse), shape),
  );
  return (part) => {
    const { head, firstRow, rows } = part;
    const all = ofLse();
    if (head === null)
      return { problem: whole, out: decodeQuantity(outQuantity, output, shape), lse: all };
    const first = firstRowOf(part, shape);
    const ofRows = (given: GivenQuantity): GivenQuantity => ({
      ...given,
      values: given.values.subarray(first, first + rows),
    });
    return {
      problem: headRows(whole, shape, head, firstRow, rows),
      out: decodeQuantity(outQuantity, sliceRows(output, first, rows), partShape(shape, part)),
      lse: all === null ? null : ofRows(all),
    };
  };
}
