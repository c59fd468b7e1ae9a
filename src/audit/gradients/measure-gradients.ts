import {
  attentionOracle,
  gradientOracle,
  type AttentionReference,
  type Gradient,
  type GradientName,
  type GroupGradients,
  type Progress,
  type SharedGradients,
} from '../../../oracles/index.js';
import {
  quantityShape,
  type Problem,
  type ProblemShape,
  type Quantity,
  type Tensor,
} from '../../problem/index.js';
import { combinations } from '../bounds/index.js';
import { auditAccuracy } from '../outputs/plan-audit.js';
import {
  addToTable,
  createGradientBounds,
  createSharedBounds,
  emptyTechniqueSums,
  techniqueTable,
  type GradientBound,
  type GradientPremises,
  type GradientTechniqueBound,
  type GradientTechniqueTable,
  type GroupBounds,
  type SharedFormats,
  type StoredForward,
} from './bounds/index.js';
import {
  byGradient,
  sharedQuantities,
  type ByGradient,
  type GradientQuantityName,
  type SharedGradientName,
} from './gradient-quantities.js';
import { keysOfHead, type KeySample } from '../rows/index.js';
import { sharedShape } from './shared-gradients.js';

/** An exact gradient: values, radii and magnitudes, and the bounds of a correct kernel's distance from them. */
export interface MeasuredGradient {
  /** The sizes of its own tensor. */
  readonly shape: ProblemShape;
  readonly exact: Gradient;
  readonly bound: GradientBound;
}

/** Exact gradients of a problem and their bounds, each in the shape of its quantity. */
export interface MeasuredGradients {
  readonly shape: ProblemShape;
  readonly reference: AttentionReference;
  /** The gradients of Q, K and V, and those of the bias and the sinks where they are judged. */
  readonly gradients: ByGradient<MeasuredGradient> &
    Readonly<Partial<Record<SharedGradientName, MeasuredGradient>>>;
  /** The effect of each technique of the kernel on them. */
  readonly techniques: ByGradient<GradientTechniqueTable> &
    Readonly<Partial<Record<SharedGradientName, GradientTechniqueTable>>>;
  /** [batch, heads, queries]: D = dO·O and Σ P|dP|. */
  readonly mean: Pick<Gradient, 'values' | 'magnitude'>;
  /** [batch, heads, queries]: the variance of the relative error that all P of a row share. */
  readonly weightVariance: Float64Array;
}

/** Settings by which gradients are measured. */
export interface GradientMeasure {
  readonly premises: GradientPremises;
  readonly given: StoredForward;
  /** Default: neither is judged. */
  readonly shared?: SharedFormats;
  /** The gradients among dQ, dK and dV that are measured; default: all, or dQ for a sample of rows. */
  readonly wanted?: readonly GradientQuantityName[];
  /** The keys that dK and dV are measured of; default: all. */
  readonly keys?: KeySample | null;
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference | undefined;
  readonly progress?: Progress | undefined;
}

/** The share of the work that the oracle of the forward pass does, which is not divided. */
export const shareOfForward = 0.2;

const noneShared: SharedFormats = { dbias: null, dsink: null };
const parts = ['values', 'radius', 'magnitude'] as const;
const boundNames = [...combinations, 'shift', 'reach', 'operands'] as const;

/** An empty measurement of a quantity, to be filled in group by group. */
function emptyMeasure(quantity: Quantity, shape: ProblemShape) {
  const length = quantityShape(quantity, shape).reduce((a, b) => a * b, 1);
  const numbers = () => new Float64Array(length);
  return {
    shape,
    exact: { values: numbers(), radius: numbers(), magnitude: numbers() },
    bound: {
      total: numbers(),
      systematic: numbers(),
      known: numbers(),
      deviation: numbers(),
      shift: numbers(),
      reach: numbers(),
      operands: numbers(),
      byOthers: [] as Float64Array[],
      apart: null,
    },
  };
}

/** Results for a head of K with the query heads that share it. */
export interface MeasuredGroup {
  readonly group: GroupGradients;
  readonly bounds: GroupBounds;
}

/** Settings by which groups are measured: data that a thread may be sent. */
export interface GroupSettings {
  readonly premises: GradientPremises;
  readonly given: StoredForward;
  readonly wanted: readonly GradientName[];
  readonly keys: KeySample | null;
  /** The exact attention of the same problem. */
  readonly reference: AttentionReference;
}

/** The options of the oracle. */
function oracleOptions({
  wanted,
  keys,
  reference: { shape },
}: Pick<GroupSettings, 'wanted' | 'keys' | 'reference'>) {
  return {
    wanted,
    ...(keys !== null && {
      keys: (kvHead: number) => [...(keysOfHead(keys, shape, kvHead) ?? [])],
    }),
  };
}

/** Makes a function that measures groups by themselves, by the number of their head of K. */
export function createGroupMeasure(
  problem: Problem,
  dout: Tensor,
  settings: GroupSettings,
): (kvHead: number) => MeasuredGroup {
  const { premises, given, reference } = settings;
  const boundsOf = createGradientBounds({ problem, dout, reference, premises, given });
  return (kvHead) => {
    const options = { ...oracleOptions(settings), kvHeads: [kvHead] };
    const { value, done } = gradientOracle(problem, dout, options).next();
    if (done === true) throw new Error(`there is no head ${kvHead} of K`);
    return { group: value, bounds: boundsOf(value) };
  };
}

/** Groups that are gathered. */
interface GatheredGroups {
  readonly add: (group: MeasuredGroup) => void;
  /** The measurements, once all groups are there, of dQ, dK and dV. */
  readonly finish: () => MeasuredGradients;
}

/** Gathers the groups of a problem to the measurements of all of it. Memory is that of ten numbers an element. */
export function gatherGroups({
  reference,
  wanted: names,
  keys: sample,
}: Pick<GroupSettings, 'reference' | 'wanted' | 'keys'>): GatheredGroups {
  const { shape } = reference;
  const { batch, heads, kvHeads, queries, qkDim, vDim } = shape;
  const keys = sample === null ? shape.keys : sample.keys / (batch * kvHeads);
  const gradients = byGradient((quantity) => {
    if (!names.includes(quantity.name)) return emptyMeasure(quantity, { ...shape, batch: 0 });
    return emptyMeasure(quantity, quantity.name === 'dq' ? shape : { ...shape, keys });
  });
  const rows = batch * heads * queries;
  const mean = { values: new Float64Array(rows), magnitude: new Float64Array(rows) };
  const weightVariance = new Float64Array(rows);
  const place = (
    { exact, bound }: MeasuredGradient,
    part: Gradient,
    ofPart: GradientTechniqueBound,
    at: number,
  ) => {
    for (const name of parts) exact[name].set(part[name], at);
    for (const name of boundNames) bound[name].set(ofPart[name], at);
    ofPart.byOthers.forEach((of, k) => {
      (bound.byOthers[k] ??= new Float64Array(bound.total.length)).set(of, at);
    });
  };
  const sums = byGradient(emptyTechniqueSums);
  const add = ({ group, bounds }: MeasuredGroup) => {
    const { dq, dk, dv } = gradients;
    group.heads.forEach((head, index) => {
      const { dq: bound, weightVariance: ofHead } = bounds.heads[index];
      weightVariance.set(ofHead, head.head * queries);
      if (head.dq !== null && bound !== null) {
        addToTable(sums.dq, bound.techniques, qkDim);
        place(dq, head.dq, bound, head.head * queries * qkDim);
      }
      mean.values.set(head.mean.values, head.head * queries);
      mean.magnitude.set(head.mean.magnitude, head.head * queries);
    });
    if (names.includes('dk') && group.dk !== null && bounds.dk !== null) {
      addToTable(sums.dk, bounds.dk.techniques, qkDim);
      place(dk, group.dk, bounds.dk, group.kvHead * keys * qkDim);
    }
    if (names.includes('dv') && group.dv !== null && bounds.dv !== null) {
      addToTable(sums.dv, bounds.dv.techniques, vDim);
      place(dv, group.dv, bounds.dv, group.kvHead * keys * vDim);
    }
  };
  const finish = () => {
    const techniques = byGradient(({ name }) => techniqueTable(sums[name], name));
    return { shape, reference, gradients, techniques, mean, weightVariance };
  };
  return { add, finish };
}

/** The exact attention that gradients are measured by: as accurate as the audit of an output has it. */
export function forwardReference(
  problem: Problem,
  { o }: GradientPremises,
  progress: Progress,
): AttentionReference {
  return attentionOracle(problem, { accuracy: auditAccuracy(o), progress });
}

/**
 * The exact gradients of a problem and the bounds of their elements.
 * @param dout [batch, heads, queries, vDim]
 * @throws RequestError as `gradientOracle`
 */
export function measureGradients(
  problem: Problem,
  dout: Tensor,
  {
    premises,
    given,
    shared: formats = noneShared,
    wanted: names = problem.rows === undefined ? ['dq', 'dk', 'dv'] : ['dq'],
    keys = null,
    reference: known,
    progress = () => undefined,
  }: GradientMeasure,
): MeasuredGradients {
  const reference =
    known ?? forwardReference(problem, premises, (done) => progress(shareOfForward * done));
  const { shape } = reference;
  const shared = createSharedBounds(problem, shape, premises, formats);
  const boundsOf = createGradientBounds({ problem, dout, reference, premises, given, shared });
  const ofShared = sharedQuantities.filter(({ name }) => formats[name] !== null);
  const wanted: GradientName[] = [...names, ...ofShared.map(({ name }) => name)];
  const { add, finish } = gatherGroups({ reference, wanted: names, keys });
  const groups = gradientOracle(problem, dout, {
    ...oracleOptions({ wanted, keys, reference }),
    progress: (done) => progress(shareOfForward + (1 - shareOfForward) * done),
  });
  let next = groups.next();
  for (; next.done !== true; next = groups.next())
    add({ group: next.value, bounds: boundsOf(next.value) });
  const finished = shared.finish(next.value);
  const { gradients, techniques, ...measured } = finish();
  return {
    ...measured,
    gradients: {
      ...gradients,
      ...sharedGradients(next.value, finished, (name) => sharedShape(problem, shape, name)),
    },
    techniques: { ...techniques, ...sharedTables(finished) },
  };
}

/** The tables of the gradients that all groups add to, where they are judged. */
function sharedTables(
  bounds: Readonly<Record<SharedGradientName, GradientTechniqueBound | null>>,
): Partial<Record<SharedGradientName, GradientTechniqueTable>> {
  const tables = sharedQuantities.flatMap(({ name }) => {
    const bound = bounds[name];
    if (bound === null) return [];
    const sums = emptyTechniqueSums();
    addToTable(sums, bound.techniques, bound.total.length);
    return [[name, techniqueTable(sums, name)] as const];
  });
  return Object.fromEntries(tables);
}

/** The measurements of the gradients that all groups add to, where they are judged. */
function sharedGradients(
  exact: SharedGradients,
  bounds: Readonly<Record<SharedGradientName, GradientBound | null>>,
  shapeOf: (name: SharedGradientName) => ProblemShape,
): Partial<Record<SharedGradientName, MeasuredGradient>> {
  const found = sharedQuantities.flatMap(({ name }) => {
    const [values, bound] = [exact[name], bounds[name]];
    return values === null || bound === null
      ? []
      : [[name, { shape: shapeOf(name), exact: values, bound }] as const];
  });
  return Object.fromEntries(found);
}
