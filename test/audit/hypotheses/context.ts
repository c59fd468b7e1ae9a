/** What hypotheses are made from, of an output that a test makes; and a family's predictions beside a textbook's. */
import { expect } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { KernelBound } from '../../../src/audit/bounds/index.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
} from '../../../src/audit/diagnosis/hypothesis.js';
import { measureRows } from '../../../src/audit/diagnosis/row-damage.js';
import { RowReader } from '../../../src/audit/diagnosis/row-reader.js';
import { rowBuilder } from '../../../src/audit/diagnosis/row-sample.js';
import {
  judgeQuantity,
  type JudgedNumbers,
  type JudgedVectors,
} from '../../../src/audit/judge-quantity.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { compared, handMadeBounds } from '../hand-made.js';
import { Textbook, type Fault, type TextbookRow } from './textbook.js';

/** What a kernel gave; an LSE of null for none. */
interface Given {
  readonly out: Float64Array;
  readonly lse: Float64Array | null;
}

/** How a context differs from one of an fp32 output whose rows all err by themselves. */
interface ContextChanges {
  readonly format?: FormatName;
  readonly onlyLse?: boolean;
  readonly pooled?: boolean;
  readonly isDamaged?: (row: number) => boolean;
}

/** The context of a diagnosis that has every row in its sample, the damaged ones first. */
export function contextOf(
  problem: Problem,
  { out, lse }: Given,
  { format = 'fp32', onlyLse = false, pooled = false, isDamaged = () => true }: ContextChanges = {},
): HypothesisContext {
  const reference = attentionOracle(problem);
  const bound = new KernelBound(problem, reference, format);
  const measure = {
    bounds: handMadeBounds(reference, {}),
    admitsOverflow: true,
    falseAlarmRate: 1e-3,
    structure: [],
  };
  const outputs = {
    out: judgeQuantity(compared(reference, 'out', out, format), measure) as JudgedVectors,
    lse:
      lse === null
        ? null
        : (judgeQuantity(compared(reference, 'lse', lse, 'fp64'), measure) as JudgedNumbers),
  };
  const input = { problem, reference, outputs, bound };
  const reader = new RowReader(problem, reference.shape);
  const damage = measureRows(input);
  const buildRow = rowBuilder(input, damage, reader);
  const rows = [...damage.error.keys()];
  const sample = [...rows.filter(isDamaged), ...rows.filter((row) => !isDamaged(row))].map((row) =>
    buildRow(row, isDamaged(row)),
  );
  return {
    input,
    shape: reference.shape,
    reader,
    sample,
    noise: damage.noise,
    onlyLse,
    pooled,
    erring: rows.filter(isDamaged),
    buildRow,
  };
}

/** The context of what a textbook gives under a fault. */
export function contextOfFault(
  problem: Problem,
  fault: Fault = {},
  changes: ContextChanges & { readonly hasLse?: boolean } = {},
): HypothesisContext {
  const { out, lse } = new Textbook(problem).rows(fault);
  return contextOf(problem, { out, lse: changes.hasLse === false ? null : lse }, changes);
}

/** A family's hypotheses by id and statement. */
export function hypothesesOf(
  family: HypothesisFamily,
  context: HypothesisContext,
): Map<string, Hypothesis> {
  return new Map([...family(context)].map((one) => [`${one.id}: ${one.statement}`, one]));
}

/** How far two numbers are apart, relative to 1 and to their size; equal infinities are not. */
function apart(a: number, b: number): number {
  return Object.is(a, b) || a === b ? 0 : Math.abs(a - b) / Math.max(1, Math.abs(b));
}

/** Checks that a hypothesis gives every row as a plain loop does; an LSE of NaN is one that nobody asks for. */
export function expectPredicts(
  { predict, statement }: Hypothesis,
  { sample }: HypothesisContext,
  plain: (row: number) => TextbookRow,
  tolerance = 1e-11,
): void {
  const off: string[] = [];
  for (const row of sample) {
    const expected = plain(row.row);
    const predicted = predict(row);
    if (predicted === null) {
      off.push(`${statement}: nothing of row ${row.row}`);
      continue;
    }
    const far = predicted.out.findIndex((x, c) => !(apart(x, expected.out[c]) <= tolerance));
    if (far >= 0)
      off.push(
        `${statement}: row ${row.row}, column ${far} is ${predicted.out[far]}, not ${expected.out[far]}`,
      );
    if (!Number.isNaN(expected.lse) && !(apart(predicted.lse, expected.lse) <= tolerance))
      off.push(`${statement}: LSE of row ${row.row} is ${predicted.lse}, not ${expected.lse}`);
  }
  expect(off.slice(0, 4)).toEqual([]);
}

/** Checks that a family names exactly some faults of a problem, and predicts what a textbook makes of each. */
export function expectFamily(
  family: HypothesisFamily,
  problem: Problem,
  faults: Readonly<Record<string, Fault>>,
): void {
  const textbook = new Textbook(problem);
  const context = contextOfFault(problem);
  const found = hypothesesOf(family, context);
  expect([...found.keys()].sort()).toEqual(Object.keys(faults).sort());
  for (const [name, fault] of Object.entries(faults))
    expectPredicts(found.get(name)!, context, (row) => textbook.row(row, fault));
}
