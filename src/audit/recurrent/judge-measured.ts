import { recurrentShape, type RecurrentShape } from '../../problem/index.js';
import { outputRounding } from '../bounds/index.js';
import type { DrawnErrors } from './draw-errors.js';
import type { RecurrentRows } from './given-quantities.js';
import { partOfTask, type HeadPart } from './head-part.js';
import { headsOfPart, withOwnHeads, type GivenResult } from './head-sample.js';
import { identitiesOf } from './identities.js';
import { judgeIdentity, type RecurrentIdentity } from './judge-identity.js';
import { judgeRecurrence, type JudgedRecurrence } from './judge-recurrence.js';
import type { MeasuredPart, MeasuredRecurrence, RecurrentPlan } from './measure-part.js';
import { groupsOf, projectionsOf } from './row-groups.js';

/** The judged quantities, as they were given. */
export type GivenRecurrences = readonly GivenResult[];

/** What is judged by measurements. */
export interface ToJudge {
  readonly plan: RecurrentPlan;
  readonly shape: RecurrentShape;
  readonly parts: readonly HeadPart[];
  readonly given: GivenRecurrences;
  readonly falseAlarmRate: number;
}

/** The measurements of all parts of a quantity as those of the whole. */
function joinParts(
  parts: readonly { readonly heads: readonly number[]; readonly measured: MeasuredRecurrence }[],
  { shape: { batch, heads, queries, vDim } }: RecurrentRows,
) {
  const size = queries * vDim;
  const length = batch * heads * size;
  const join = (of: (measured: MeasuredRecurrence) => Float64Array) => {
    const all = new Float64Array(length);
    for (const part of parts)
      part.heads.forEach((head, i) => {
        all.set(of(part.measured).subarray(i * size, (i + 1) * size), head * size);
      });
    return all;
  };
  const [first] = parts;
  const draws = first.measured.draws.map((_, at): DrawnErrors => {
    const ofPart = ({ measured }: (typeof parts)[number]) => measured.draws[at];
    return {
      squares: join(({ draws: drawn }) => drawn[at].squares),
      energies: parts.flatMap((part) => ofPart(part).energies),
      projections: parts.flatMap((part) => ofPart(part).projections),
      alike: {
        elements: join(({ draws: drawn }) => drawn[at].alike.elements),
        groups: Float64Array.from(parts.flatMap((part) => [...ofPart(part).alike.groups])),
        projections: Float64Array.from(
          parts.flatMap((part) => [...ofPart(part).alike.projections]),
        ),
      },
    };
  });
  const hasBefore = first.measured.fromBefore !== null;
  const empty = new Float64Array(0);
  return {
    exact: join(({ exact }) => exact),
    radius: join(({ radius }) => radius),
    worst: join(({ worst }) => worst),
    fromBefore: hasBefore ? join(({ fromBefore }) => fromBefore ?? empty) : null,
    draws,
  };
}

/** The measurements of a quantity, of all parts together. */
export function measureOf(
  one: GivenResult,
  { plan, shape, parts }: ToJudge,
  measured: readonly MeasuredPart[],
) {
  const { name, rows, given } = one;
  const ofParts = parts.flatMap((part, i) => {
    const found = measured[i].quantities.find((quantity) => quantity.name === name);
    return found === undefined ? [] : [{ heads: headsOfPart(part, one, shape), measured: found }];
  });
  const { exact, radius, worst, fromBefore, draws } = joinParts(ofParts, rows);
  const batch = (heads: number) => ({ ...rows, shape: { ...rows.shape, batch: 1, heads } });
  const groups = ofParts.flatMap(({ heads }) =>
    groupsOf(batch(heads.length)).map((group) => ({ ...group, head: heads[group.head] })),
  );
  const projections = projectionsOf(name, groups, exact, fromBefore);
  const { format } = given;
  const drawnOf = { rows, format, exact, groups, projections };
  return { drawnOf, radius, worst, draws, count: plan.draws };
}

/** Judges all quantities by the measurements of all parts. */
export function judgeQuantities(
  toJudge: ToJudge,
  measured: readonly MeasuredPart[],
): readonly JudgedRecurrence[] {
  const falseAlarmRate = toJudge.falseAlarmRate / (toJudge.given.length + 1);
  return toJudge.given.map((one) => {
    const { drawnOf, radius, worst, draws, count } = measureOf(one, toJudge, measured);
    const total = worst.map((most, i) => {
      const before = most + radius[i];
      if (!(before < Infinity)) return Infinity;
      return before + outputRounding(drawnOf.format, drawnOf.exact[i], before);
    });
    const drawn = draws.map((errors) => ({ count, errors }));
    const judged = judgeRecurrence(one.given, {
      drawnOf,
      radius,
      total,
      draws: drawn,
      falseAlarmRate,
    });
    return withOwnHeads(judged, one);
  });
}

/** The values of a part, by name. */
function valuesOfPart(given: GivenRecurrences, part: HeadPart, shape: RecurrentShape) {
  return Object.fromEntries(
    given.map((one) => {
      const {
        name,
        rows,
        given: { values },
      } = one;
      const size = rows.shape.queries * rows.shape.vDim;
      const heads = headsOfPart(part, one, shape);
      const all = new Float64Array(heads.length * size);
      heads.forEach((head, i) => {
        all.set(values.subarray(head * size, (head + 1) * size), i * size);
      });
      return [name, all];
    }),
  );
}

/** Judges all identities by the measurements of all parts. */
export function judgeIdentities(
  { plan, shape, parts, given, falseAlarmRate }: ToJudge,
  measured: readonly MeasuredPart[],
): readonly RecurrentIdentity[] {
  const names = new Set(given.map(({ name }) => name));
  const count = measured.reduce((sum, part) => sum + part.identities.length, 0);
  const probability = falseAlarmRate / (given.length + 1) / count;
  return parts.flatMap((part, i) => {
    if (measured[i].identities.length === 0) return [];
    const { problem, gradientInputs } = partOfTask(plan.task, shape, part);
    const rules = identitiesOf(problem, recurrentShape(problem), gradientInputs, names);
    const values = valuesOfPart(given, part, shape);
    return measured[i].identities.map((one, at) =>
      judgeIdentity({ part, rule: rules[at], measured: one, values }, probability),
    );
  });
}
