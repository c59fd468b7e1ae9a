import { expect, it } from 'vitest';
import { tileRows } from '../../../oracles/attention/operand.js';
import { rulesOf } from '../../../oracles/attention/rules.js';
import { addKeys, addQueries, blockErrors } from '../../../oracles/gradients/add-tiles.js';
import { createGradientEngine } from '../../../oracles/gradients/gradient-engine.js';
import { headGroups } from '../../../oracles/gradients/operands.js';
import type { RowStatistics } from '../../../oracles/gradients/row-statistics.js';
import { emptySums, type GradientSums } from '../../../oracles/gradients/sums.js';
import { loadBlock } from '../../../oracles/gradients/weigh-tile.js';
import { randomValues } from '../../../properties/problems/values.js';
import { keysOf, maskTile, problemShape, type KeyRange } from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';

const places = Array.from({ length: tileRows }, (_, i) => i);
const total = (of: (i: number) => number) => places.reduce((sum, i) => sum + of(i), 0);
const most = (of: (i: number) => number) => places.reduce((a, i) => Math.max(a, of(i)), 0);

/** A block of 64 rows or fewer against a tile, with numbers of every array drawn: weights and derivatives are no row's own. */
function drawnTile(seed: number) {
  const random = randomValues(seed);
  const [dim, vDim] = [random.integer(1, 6), random.integer(1, 6)];
  const frame = { heads: 2, queries: 100, keys: 150, dim, vDim, format: 'fp32' as const };
  const probability = [0, 0.5][random.integer(0, 1)];
  const kept = { shape: [100, 150], data: new Uint8Array(15_000).fill(1) };
  const changes = probability === 0 ? {} : { dropout: { kept, probability } };
  const problem = filledProblem(frame, random.normal, changes);
  const shape = problemShape(problem);
  const dout = tensor('fp32', [1, 2, 100, vDim], random.normal);
  const head = random.integer(0, 1);
  const operands = [...headGroups(problem, dout, shape)][head].operandsOf(head);
  const firstRow = tileRows * random.integer(0, 1);
  const firstKey = tileRows * random.integer(0, 2);
  const rows = Math.min(tileRows, 100 - firstRow);
  const seen = random.uniform() < 0.5 ? 0.05 : 0.5;
  const ranges = Array.from({ length: rows }, (): KeyRange[] => {
    const cuts = Array.from({ length: 4 }, () => random.integer(0, 150)).sort((a, b) => a - b);
    const both = [
      { begin: cuts[0], end: cuts[1] },
      { begin: cuts[2], end: cuts[3] },
    ];
    const apart = cuts[1] < cuts[2] ? both : both.slice(0, 1);
    return random.uniform() < seen ? apart.filter(({ begin, end }) => begin < end) : [];
  });
  const column = (share: number) =>
    Float64Array.from(places, (i) => (i < rows && random.uniform() < share ? random.uniform() : 0));
  const statistics = {
    relative: column(0.8),
    weightError: column(0.8),
    absolute: column([0, 0.5, 1][random.integer(0, 2)]),
    // Of the size of dropped weights, so that neither hides the other.
    floor: column(0.8).map((x) => x * 2 ** -973),
    isUsable: Uint8Array.from(places, (i) => (i < rows ? random.integer(0, 1) : 0)),
  } as unknown as RowStatistics;
  const engine = createGradientEngine(dim, vDim);
  const block = { operands, firstRow, ranges };
  loadBlock(engine, block);
  const { tile } = engine;
  for (const { view } of [engine.products, engine.scales, engine.applied, tile.scores])
    view.forEach((_, at) => (view[at] = random.uniform()));
  engine.products.view.forEach((x, at) => (engine.products.view[at] = x - 0.5));
  // A row whose errors are all relative adds nothing else, whatever its weights are.
  for (const i of places)
    if (statistics.absolute[i] === 0) tile.scores.view.fill(NaN, i * tileRows, (i + 1) * tileRows);
  const ofTile = { begin: firstKey, end: firstKey + tileRows };
  const view = maskTile(ranges, ofTile, tile.low.view, tile.high.view);
  const seenBy = ranges.map((ofRow) => new Set(keysOf(ofRow)));
  const elements = (of: typeof dout, first: number, length: number, width: number) => {
    const values = decodeTensor(of);
    return (i: number, c: number) =>
      first + i < length ? values[(head * length + first + i) * width + c] : 0;
  };
  return {
    random,
    dim,
    vDim,
    block,
    statistics,
    engine,
    view,
    firstKey,
    firstRow,
    share: 1 - probability,
    errors: blockErrors(block, statistics, rulesOf(problem, shape)),
    q: elements(problem.q, firstRow, 100, dim),
    dO: elements(dout, firstRow, 100, vDim),
    k: elements(problem.k, firstKey, 150, dim),
    at: ({ view: numbers }: { view: Float64Array }, i: number, j: number) =>
      numbers[i * tileRows + j],
    sees: (i: number, j: number) => seenBy[i]?.has(firstKey + j) ?? false,
  };
}

interface Addition {
  readonly sum: number;
  readonly size: number;
  readonly error: number;
}

/** Throws unless each row of the sums has had added what `of` says, once, and the others nothing. */
function expectAdded(
  found: GradientSums,
  what: string,
  of: (to: number) => { floor: number; element: (c: number) => Addition } | null,
): void {
  for (let to = 0; to < found.rows; to++) {
    const row = of(to);
    expect(found.additions[to], `${what}: additions to ${to}`).toBe(row === null ? 0 : 1);
    const floor = row?.floor ?? 0;
    expect(Math.abs(found.floor[to] - floor), what).toBeLessThanOrEqual(2 ** -40 * floor);
    for (let c = 0; c < found.dim; c++) {
      const wanted = row?.element(c) ?? { sum: 0, size: 0, error: 0 };
      for (const name of ['sum', 'size', 'error'] as const) {
        const value = found[name][to * found.dim + c];
        const size = Math.abs(wanted[name]) + (name === 'sum' ? wanted.size : 0);
        const isClose = Math.abs(value - wanted[name]) <= 2 ** -40 * size;
        if (!isClose) expect(value, `${what}: ${name} of ${to}, ${c}`).toBe(wanted[name]);
      }
    }
  }
}

it('a tile adds Σ dT q and Σ P dO to the keys that are wanted and seen, with the errors of both factors', () => {
  let added = 0;
  for (let run = 0; run < scaled(16); run++) {
    const drawn = drawnTile(testSeed + run);
    const { random, dim, vDim, block, statistics, engine, view, firstKey, errors } = drawn;
    const { q, dO, at, sees, share } = drawn;
    const one = firstKey + random.integer(0, 21);
    const wanted = Array.from({ length: 150 }, (_, key) => key).filter((key) =>
      run % 3 === 0 ? key === one : random.uniform() < 0.5 * (run % 3),
    );
    const dk = emptySums(wanted.length, dim);
    const dv = emptySums(wanted.length, vDim);
    const placeOf = (key: number) => wanted.indexOf(key);
    const tile = { firstKey, view, errors, weights: engine.applied };
    const targets = { dq: null, visit: null, placeOf };
    addKeys(engine, block, statistics, { ...targets, keys: null }, tile);
    addKeys(engine, block, statistics, { ...targets, keys: { dk, dv } }, tile);
    const { relative, weightError, absolute, floor, isUsable } = statistics;
    const ofKey = (to: number) => {
      const j = wanted[to] - firstKey;
      return j >= 0 && j < tileRows && places.some((i) => sees(i, j)) ? j : null;
    };
    expectAdded(dk, 'dK', (to) => {
      const j = ofKey(to);
      if (j === null) return null;
      added++;
      const ofWeights = total((i) =>
        absolute[i] === 0 ? 0 : absolute[i] * at(engine.tile.scores, i, j),
      );
      const element = (c: number) => {
        const size = total((i) => at(engine.scales, i, j) * Math.abs(q(i, c)));
        return {
          sum: total((i) => at(engine.products, i, j) * q(i, c)),
          size,
          error: most((i) => relative[i]) * size + ofWeights * most((i) => Math.abs(q(i, c))),
        };
      };
      return { floor: total((i) => floor[i]), element };
    });
    expectAdded(dv, 'dV', (to) => {
      const j = ofKey(to);
      if (j === null) return null;
      const element = (c: number) => {
        const size = total((i) => at(engine.applied, i, j) * Math.abs(dO(i, c)));
        const sum = total((i) => at(engine.applied, i, j) * dO(i, c));
        return { sum, size, error: most((i) => weightError[i]) * size };
      };
      return { floor: (total((i) => isUsable[i]) * 2 ** -978) / share, element };
    });
  }
  expect(added).toBeGreaterThan(0);
});

it('a tile adds Σ dT k to the rows that see a key of it, each with its own errors', () => {
  let added = 0;
  for (let run = 0; run < scaled(16); run++) {
    const drawn = drawnTile(testSeed + run);
    const { dim, block, statistics, engine, firstKey, firstRow, errors, k, at, sees } = drawn;
    const dq = emptySums(100, dim);
    addQueries(engine, block, statistics, dq, { firstKey, errors });
    const { relative, absolute, floor } = statistics;
    expectAdded(dq, 'dQ', (to) => {
      const i = to - firstRow;
      if (i < 0 || !places.some((j) => sees(i, j))) return null;
      added++;
      const ofWeights =
        absolute[i] === 0 ? 0 : absolute[i] * total((j) => at(engine.tile.scores, i, j));
      const element = (c: number) => {
        const size = total((j) => at(engine.scales, i, j) * Math.abs(k(j, c)));
        return {
          sum: total((j) => at(engine.products, i, j) * k(j, c)),
          size,
          error: relative[i] * size + ofWeights * most((j) => Math.abs(k(j, c))),
        };
      };
      return { floor: tileRows * floor[i], element };
    });
  }
  expect(added).toBeGreaterThan(0);
});
