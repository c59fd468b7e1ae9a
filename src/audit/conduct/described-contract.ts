import type { ReferenceQuantity } from '../../../oracles/index.js';
import type { ProblemShape, Quantity, Tensor } from '../../problem/index.js';
import { quantityShape } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { combinations, createCombinedBounds, type CombinedBounds } from '../bounds/index.js';
import { findingsOf, outputWords, type FindingWords } from '../findings.js';
import {
  judgeNumbers,
  judgeVectors,
  type JudgedQuantity,
  type JudgedStatistic,
} from '../judge-quantity.js';
import { decodeQuantity, type ComparedValues, type GivenQuantity } from '../kernel-outputs.js';
import { firstRowOf, type Part } from '../parts/part-plan.js';
import { extentOf, type ReachedVerdict } from '../verdict.js';
import {
  acceptedCauses,
  foundCause,
  unexplainedCause,
  type CauseFamily,
  type FoundCause,
} from './causes.js';
import { usualFalseAlarmRate, type Contract } from './contract.js';
import type { MeasuringTerms } from './stage.js';

/** The exact values of a quantity, and how far a correct kernel may be from them. */
export interface MeasuredQuantity {
  readonly exact: ReferenceQuantity;
  /** `total` has the radius; of a vector the rounding of the output too. */
  readonly bound: CombinedBounds;
}

/** A quantity of each name. */
export type MeasuredQuantities = Readonly<Record<string, MeasuredQuantity>>;

/** A fault of a kernel, and what a kernel with it computes: quantities that are left out are right. */
export interface DescribedCause {
  readonly id: string;
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  readonly measured: MeasuredQuantities;
}

/** A contract whose rows are measured by themselves, in words and functions of its own. */
export interface ContractDescription<Problem> {
  readonly quantities: readonly Quantity[];
  readonly shapeOf: (problem: Problem) => ProblemShape;
  /** How the problem splits in parts: rows of heads, in their order. */
  readonly partsOf: (problem: Problem) => readonly Part[];
  /** A part as a problem of its own; with the head null it is the problem. */
  readonly partOf: (problem: Problem, part: Part) => Problem;
  /** The exact values of all quantities with their radii, and the bounds. */
  readonly measure: (problem: Problem) => MeasuredQuantities;
  /** The worst statistics of a quantity's errors; default: none. */
  readonly statisticsOf?: (
    compared: ComparedValues,
    bound: CombinedBounds,
    falseAlarmRate: number,
  ) => readonly JudgedStatistic[];
  /** The causes that a failure may have, in the order in which they are named. */
  readonly causes: readonly CauseFamily<Problem, DescribedCause>[];
  readonly words: Pick<FindingWords, 'arithmetic'> & Partial<FindingWords>;
}

/** Results of a kernel to be judged. */
export interface DescribedPlan<Problem> {
  readonly problem: Problem;
  /** Tensors by the names of their quantities. */
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly falseAlarmRate?: number;
}

/** The judgement of a kernel's results. */
export interface DescribedAudit {
  readonly verdict: ReachedVerdict<FoundCause>;
  readonly quantities: readonly JudgedQuantity[];
}

/** The types of a described contract. */
interface DescribedTerms<Problem> extends MeasuringTerms {
  readonly plan: DescribedPlan<Problem>;
  readonly request: Part;
  readonly answer: MeasuredQuantities;
  readonly data: Problem;
  readonly measured: MeasuredQuantities;
  readonly cause: FoundCause;
  readonly result: DescribedAudit;
}

/** Measures a part of a problem, for whoever is asked to. */
export function measureDescribed<Problem>(
  { measure, partOf }: Pick<ContractDescription<Problem>, 'measure' | 'partOf'>,
  problem: Problem,
  part: Part,
): MeasuredQuantities {
  return measure(part.head === null ? problem : partOf(problem, part));
}

/** A quantity of which nothing is measured, so that nothing of it has a bound, to be filled part by part. */
function emptyQuantity(quantity: Quantity, shape: ProblemShape): MeasuredQuantity {
  const length = quantityShape(quantity, shape).reduce((a, b) => a * b, 1);
  const numbers = () => new Float64Array(length);
  const magnitude = quantity.row === 'vector' ? numbers() : null;
  const exact = { values: numbers(), radius: numbers(), magnitude };
  const bound = createCombinedBounds(length);
  for (const name of ['total', 'systematic', 'deviation'] as const) bound[name].fill(Infinity);
  return { exact, bound };
}

/** Writes a part to the place of its first row, counted over all heads. */
function fill(to: MeasuredQuantity, part: MeasuredQuantity, row: number, columns: number): void {
  const at = row * columns;
  to.exact.values.set(part.exact.values, at);
  to.exact.radius.set(part.exact.radius, at);
  if (part.exact.magnitude !== null) to.exact.magnitude?.set(part.exact.magnitude, at);
  for (const name of combinations) to.bound[name].set(part.bound[name], at);
}

/** Makes the contract of a description. */
export function describedContract<Problem>(
  description: ContractDescription<Problem>,
): Contract<DescribedTerms<Problem>> {
  const { quantities, shapeOf, partsOf, statisticsOf = () => [], causes } = description;
  const words = { ...outputWords, prefixesTests: true, ...description.words };
  const columnsOf = (quantity: Quantity, shape: ProblemShape) =>
    quantity.row === 'vector' ? shape[quantity.axes[3] ?? 'vDim'] : 1;

  /** Judges what was given as of a kernel that computes these. */
  function judgeAs(
    given: readonly GivenQuantity[],
    measured: MeasuredQuantities,
    shape: ProblemShape,
    falseAlarmRate: number,
  ): JudgedQuantity[] {
    return given.map((one): JudgedQuantity => {
      const { exact, bound } = measured[one.quantity.name];
      const columns = columnsOf(one.quantity, shape);
      const isSpecialRow = (row: number) =>
        exact.values.subarray(row * columns, (row + 1) * columns).some((x) => !Number.isFinite(x));
      const compared = { ...one, exact, shape, isSpecialRow, mayBeNaN: () => false };
      const rate = falseAlarmRate / (2 * given.length);
      const measure = {
        ofElements: bound,
        unit: Int32Array.from({ length: one.values.length / columns }, (_, row) => row),
        falseAlarmRate: rate,
        structure: statisticsOf(compared, bound, rate),
      };
      return one.quantity.row === 'vector'
        ? judgeVectors(compared, measure)
        : judgeNumbers(compared, measure);
    });
  }

  return {
    *stages({ problem }) {
      const shape = shapeOf(problem);
      const parts = partsOf(problem);
      const measured = Object.fromEntries(
        quantities.map((quantity) => [quantity.name, emptyQuantity(quantity, shape)]),
      );
      yield [
        {
          name: 'measure',
          requests: parts,
          data: problem,
          isDivided: parts.length > 1,
          measure: (part) => measureDescribed(description, problem, part),
          settle: (answer, index) => {
            const row = firstRowOf(parts[index], shape);
            for (const quantity of quantities) {
              const { name } = quantity;
              fill(measured[name], answer[name], row, columnsOf(quantity, shape));
            }
          },
        },
      ];
      return measured;
    },
    judge({ problem, tensors, falseAlarmRate = usualFalseAlarmRate }, measured) {
      const shape = shapeOf(problem);
      const names = quantities.map(({ name }) => name);
      const unknown = Object.keys(tensors).find((name) => !names.includes(name));
      if (unknown !== undefined)
        throw new RequestError(`there is no quantity ${unknown}; give ${names.join(', ')}`);
      const given = quantities.flatMap((quantity) => {
        const tensor = tensors[quantity.name];
        return tensor === undefined ? [] : [decodeQuantity(quantity, tensor, shape)];
      });
      if (given.length === 0)
        throw new RequestError(`there is nothing to judge; give ${names.join(', ')}`);
      const judged = judgeAs(given, measured, shape, falseAlarmRate);
      // What has no bound passes whatever it is: a cause that takes bounds away explains nothing.
      const unboundedOf = (all: readonly JudgedQuantity[]) =>
        all.reduce((sum, one) => sum + extentOf(one).unbounded, 0);
      const passesAs = (changed: MeasuredQuantities) => {
        const again = judgeAs(given, { ...measured, ...changed }, shape, falseAlarmRate);
        return findingsOf(again, words).length === 0 && unboundedOf(again) <= unboundedOf(judged);
      };
      const diagnose = () => {
        const [first, ...others] = acceptedCauses(causes, problem, (cause) =>
          passesAs(cause.measured) ? cause : null,
        );
        return first === undefined
          ? unexplainedCause()
          : foundCause(first, ['against what this fault gives, all passes'], others);
      };
      return {
        evidence: {
          judged,
          required: judged,
          findings: findingsOf(judged, words),
          unjudged: {
            unbounded: (named) => `no element of ${named} has a bound`,
            lost: (named) => `nothing in ${named} is larger than underflow`,
          },
        },
        explainers: { diagnose },
        result: (verdict) => ({ verdict, quantities: judged }),
      };
    },
  };
}
