import { runRecurrence, unrounded } from '../../../kernels/index.js';
import { recurrentGradients, recurrentOracle } from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import {
  recurrentQuantities,
  recurrentShape,
  type RecurrentQuantityName,
  type RecurrentResults,
  type RecurrentShape,
} from '../../problem/index.js';
import { recurrentWorstCase } from './bounds/index.js';
import { arithmeticsOf } from './declared-arithmetics.js';
import type { RecurrentDeclaration } from './declaration.js';
import { drawErrors, type DrawnErrors, type DrawnQuantity } from './draw-errors.js';
import { byHead, recurrentRows, type RecurrentRows } from './given-quantities.js';
import { cutProblem, partOfTask, type HeadPart, type RecurrentTask } from './head-part.js';
import { identitiesOf } from './identities.js';
import { groupsOf, projectionsOf, tokensOfGroup } from './row-groups.js';

/** What all parts of a recurrence are measured from. */
export interface RecurrentPlan {
  readonly task: RecurrentTask;
  readonly declared: RecurrentDeclaration;
  /** The judged quantities, with the formats that they are stored in. */
  readonly formats: Readonly<Partial<Record<RecurrentQuantityName, FormatName>>>;
  /** The number of times that roundings are drawn. */
  readonly draws: number;
}

/** A quantity of a part: exact values with their radii, the worst case before the output is rounded, and errors as drawn by each arithmetic. */
export interface MeasuredRecurrence {
  readonly name: RecurrentQuantityName;
  readonly exact: Float64Array;
  readonly radius: Float64Array;
  readonly worst: Float64Array;
  readonly fromBefore: Float64Array | null;
  readonly draws: readonly DrawnErrors[];
}

/** What the identities of a part err by, as drawn by each arithmetic, and by the radii. */
export interface MeasuredIdentity {
  readonly radius: number;
  readonly draws: readonly Float64Array[];
  /** The most that errors of one sense make of it. */
  readonly alike: readonly number[];
}

/** All measurements of a part. */
export interface MeasuredPart {
  readonly quantities: readonly MeasuredRecurrence[];
  readonly identities: readonly MeasuredIdentity[];
}

/** Exact values and radii by name, as kernels write them. */
function exactQuantities({ problem, gradientInputs }: RecurrentTask, hasGradients: boolean) {
  const { out, finalState } = recurrentOracle(problem);
  const gradients =
    gradientInputs === undefined || !hasGradients
      ? {}
      : recurrentGradients(problem, gradientInputs).quantities;
  return { out, final_state: finalState, ...gradients };
}

/** What the states before chunks of tokens add to the outputs, in the order of their rows. */
function outputsFromBefore(
  { problem }: RecurrentTask,
  shape: RecurrentShape,
  rows: RecurrentRows,
  exact: Float64Array,
): Float64Array {
  const [arithmetic] = arithmeticsOf(problem, { form: 'recurrent' });
  const cut = cutProblem(problem, shape, tokensOfGroup);
  const alone = runRecurrence(cut, arithmetic, unrounded).out;
  if (alone === undefined) return new Float64Array(exact.length);
  const values = byHead(alone, rows);
  return exact.map((x, i) => x - values[i]);
}

/** The largest of some bounds, element by element. */
function largest(bounds: readonly Float64Array[]): Float64Array {
  const [first, ...others] = bounds;
  return first.map((x, i) => others.reduce((most, bound) => Math.max(most, bound[i]), x));
}

/** A quantity of a part before its errors are drawn; none where the part does not have it. */
function measureQuantity(
  name: RecurrentQuantityName,
  task: RecurrentTask,
  reference: { readonly values: Float64Array; readonly radius: Float64Array } | undefined,
  {
    plan,
    worstCases,
  }: {
    readonly plan: RecurrentPlan;
    readonly worstCases: readonly RecurrentResults<Float64Array>[];
  },
) {
  const shape = recurrentShape(task.problem);
  const rows = recurrentRows(name, task.problem, shape);
  if (rows === null || reference === undefined) return [];
  const exact = byHead(reference.values, rows);
  const fromBefore = name === 'out' ? outputsFromBefore(task, shape, rows, exact) : null;
  const groups = groupsOf(rows);
  const drawn: DrawnQuantity = {
    rows,
    format: plan.formats[name] ?? 'fp32',
    exact,
    groups,
    projections: projectionsOf(name, groups, exact, fromBefore),
  };
  const worst = largest(worstCases.flatMap((one) => one[name] ?? []));
  const radius = byHead(reference.radius, rows);
  return [{ name, drawn, radius, worst: byHead(worst, rows), fromBefore }];
}

/** Measures a part: exact values, worst cases, and errors as drawn. */
export function measurePart(plan: RecurrentPlan, part: HeadPart, index: number): MeasuredPart {
  const { declared, formats, draws } = plan;
  const task = partOfTask(plan.task, recurrentShape(plan.task.problem), part);
  const { problem, gradientInputs } = task;
  const shape = recurrentShape(problem);
  const names = Object.keys(formats) as RecurrentQuantityName[];
  const hasGradients = names.some((name) => recurrentQuantities[name].isGradient);
  const inputs = hasGradients ? gradientInputs : undefined;
  const exacts: Readonly<
    Partial<Record<RecurrentQuantityName, { values: Float64Array; radius: Float64Array }>>
  > = exactQuantities(task, hasGradients);
  const arithmetics = arithmeticsOf(problem, declared);
  const options = inputs === undefined ? {} : { gradientInputs: inputs };
  const worstCases = arithmetics.map((one) => recurrentWorstCase(problem, one, options));
  const measured = names.flatMap((name) =>
    measureQuantity(name, task, exacts[name], { plan, worstCases }),
  );
  const rules = identitiesOf(problem, shape, inputs, new Set(names));
  const request = {
    problem,
    gradientInputs: inputs,
    quantities: measured.map(({ drawn }) => drawn),
    combinations: rules.map(({ combination }) => combination),
    seed: index * draws,
  };
  const all = arithmetics.map((arithmetic) => drawErrors(request, arithmetic, draws));
  return {
    quantities: measured.map(({ name, drawn, radius, worst, fromBefore }, at) => ({
      name,
      exact: drawn.exact,
      radius,
      worst,
      fromBefore,
      draws: all.map(({ quantities }) => quantities[at]),
    })),
    identities: rules.map(({ combination }, at) => ({
      radius: measured.reduce((sum, { name, radius }) => {
        const coefficients = combination[name];
        if (coefficients === undefined) return sum;
        return coefficients.reduce((all, c, i) => all + Math.abs(c) * radius[i], sum);
      }, 0),
      draws: all.map(({ combinations }) => combinations[at]),
      alike: all.map(({ alike }) => alike[at]),
    })),
  };
}
