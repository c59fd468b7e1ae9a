import { describe, expect, it } from 'vitest';
import { prepareFa4Program, warpName } from '../../../kernels/index.js';
import {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  inOrderScheduler,
  sumOfCounters,
  timedScheduler,
} from '../../../src/machine/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { completeRecords, expectTrace, threadNames, type TraceDocument } from './trace-format.js';

const heads = 2;

function tensor(rows: number): Tensor {
  // Small bf16 numbers of both signs.
  const data = Uint16Array.from(
    { length: heads * rows * 64 },
    (_, i) => ((i * 7919) & 0x807f) | 0x3f00,
  );
  return { format: 'bf16', shape: [heads, rows, 64], data };
}

const problem: Problem = {
  q: tensor(256),
  k: tensor(384),
  v: tensor(384),
  scale: 0.125,
  causal: false,
  window: null,
  softcap: null,
};

/** Both heads' clusters, traced. */
function traced(isTimed: boolean, ctas: 1 | 2 = 1) {
  const pieces: Uint8Array[] = [chromeTraceHead({ schedule: 'any' }, isTimed)];
  const about = { ctas, warpName, isTimed };
  const sections = [0, 1].map((cluster) => createChromeTraceSection({ ...about, cluster }));
  const program = prepareFa4Program(
    problem,
    {},
    {
      ctas,
      races: false,
      trace: (event, cluster) => sections[cluster].add(event),
      scheduler: () => (isTimed ? timedScheduler() : inOrderScheduler()),
    },
  );
  expect(program.clusters).toBe(2);
  const runs = [0, 1].map((cluster) => program.run(cluster));
  for (const section of sections) pieces.push(...section.chunks());
  pieces.push(chromeTraceTail());
  const document = expectTrace(Buffer.concat(pieces).toString());
  return { runs, document, counters: sumOfCounters(runs.flatMap((run) => run.counters)) };
}

/** Clocks of the events of a category, by name. */
function clocksByName(document: TraceDocument, category: string): Map<string, number> {
  const clocks = new Map<string, number>();
  for (const { cat, name, dur } of completeRecords(document))
    if (cat === category) clocks.set(name, (clocks.get(name) ?? 0) + 1000 * dur);
  return clocks;
}

describe('a trace in clocks', () => {
  const { document, counters, runs } = traced(true);
  const names = threadNames(document);
  const ofThread = (name: string) =>
    completeRecords(document).filter(({ pid, tid }) => names.get(`${pid} ${tid}`) === name);

  it('has a thread for each warp and each unit of both clusters', () => {
    for (const pid of [1, 2]) {
      const own = [...names].filter(([key]) => key.startsWith(`${pid} `)).map(([, name]) => name);
      for (let warp = 0; warp < 16; warp++) expect(own).toContain(warpName(warp));
      for (const unit of ['TMA loads', 'TMA stores', 'tensor core']) expect(own).toContain(unit);
      for (const unit of ['MUFU', 'FMA', 'tensor memory'])
        for (let part = 0; part < 4; part++) expect(own).toContain(`${unit}, part ${part}`);
    }
  });

  it('shows the clocks that the counters count', () => {
    const sum = (name: string) =>
      ofThread(name).reduce((total, { dur }) => total + Math.round(1e6 * dur), 0) / 1000;
    expect(sum('tensor core')).toBe(counters.unitClocks['tensor core']);
    expect(sum('TMA loads') + sum('TMA stores')).toBe(counters.unitClocks['TMA']);
    // 256 × 384 products of 64 elements, twice, at 8192 operations a clock.
    expect(sum('tensor core')).toBe((heads * 2 * 2 * 256 * 384 * 64) / 8192);
  });

  it('shows each wait for as long as it is counted, and the clock of the instruction', () => {
    const shown = clocksByName(document, 'wait');
    for (const [name, waits] of Object.entries(counters.waits))
      expect(shown.get(name)).toBeCloseTo(waits + (counters.waitClocks[name] ?? 0), 6);
    expect(shown.get('registers being loaded')).toBeGreaterThan(0);
  });

  it('ends when the run ends', () => {
    for (const { cluster, clocks } of runs) {
      const own = completeRecords(document).filter(({ pid }) => pid === cluster + 1);
      const end = Math.max(...own.map(({ ts, dur }) => 1000 * (ts + dur)));
      expect(end).toBeCloseTo(clocks, 6);
    }
  });

  it('leads from every asynchronous operation back to its issue', () => {
    const flows = document.traceEvents.filter(({ ph }) => ph === 'f').length;
    const operations = completeRecords(document).filter(({ cat }) => cat === 'operation');
    expect(flows).toBe(operations.length);
    const issued = (op: string) => counters.instructions[op];
    expect(operations.filter(({ args }) => args?.['op'] === 'tcgen05.mma')).toHaveLength(
      issued('tcgen05.mma'),
    );
    expect(document.traceEvents.filter(({ ph }) => ph === 'i')).toHaveLength(
      issued('tcgen05.commit'),
    );
  });

  it('tells the share of time of the tensor core', () => {
    const shares = document.traceEvents.filter(
      ({ ph, name }) => ph === 'C' && name === 'tensor core, % busy',
    );
    const clocks = shares.reduce(
      (sum, { args }) => sum + (256 * (args!['busy'] as number)) / 100,
      0,
    );
    const rounding = shares.length * 256 * 0.0005;
    expect(Math.abs(clocks - counters.unitClocks['tensor core'])).toBeLessThanOrEqual(rounding);
  });
});

it('has steps in place of clocks without a timed schedule, and no shares of time', () => {
  const { document, runs } = traced(false);
  expect(document.otherData['time']).toBe('1 ns is 1 step');
  expect(document.traceEvents.some(({ ph }) => ph === 'C')).toBe(false);
  for (const { cluster, steps } of runs) {
    const own = completeRecords(document).filter(({ pid }) => pid === cluster + 1);
    const end = Math.max(...own.map(({ ts, dur }) => 1000 * (ts + dur)));
    expect(Math.abs(end - steps)).toBeLessThanOrEqual(1);
  }
});

it('shows a pair of CTAs as two processes, of which the first has the tensor core', () => {
  const { document } = traced(true, 2);
  const names = document.traceEvents.filter(({ name }) => name === 'process_name');
  expect(names.map(({ args }) => args!['name'])).toEqual([
    ...['cluster 0, CTA 0', 'cluster 0, CTA 1', 'cluster 1, CTA 0', 'cluster 1, CTA 1'],
  ]);
  const multiplying = completeRecords(document).filter(
    ({ args, cat }) => cat === 'operation' && args?.['op'] === 'tcgen05.mma',
  );
  expect(new Set(multiplying.map(({ pid }) => pid))).toEqual(new Set([1, 3]));
});
