import { expect, it } from 'vitest';
import { exp2Pattern, polynomialShare } from '../../kernels/fa4/exp2-tuning.js';
import { exponentialSplit, rescaleTraffic } from '../../kernels/fa4/program/index.js';
import {
  clocksOf,
  roofline,
  sumOfCounters,
  unitRates,
  type CtaCounters,
  type RooflineUnit,
} from '../../src/machine/index.js';
import { balancedShare } from './balanced-share.js';
import { operandClocks } from './measured-work.js';
import { emulate } from '../../src/emulate/index.js';
import type { Problem } from '../../src/problem/index.js';
import { attentionFolder, readManifest } from '../fixtures/attention-manifest.js';
import { readStoredFile } from '../fixtures/stored-tensors.js';
import { blockWork, countersOf, hardwareOnly, normalProblem, timedBlock } from './roofline-runs.js';

/** `ROOFLINE=all` prints the tables of docs/reference/machine-roofline.md. */
const printsAll = process.env['ROOFLINE'] === 'all';
const { sm_100: rates } = unitRates;

type Cell = string | number;

function format(cell: Cell): string {
  return typeof cell === 'string' ? cell : String(Math.round(cell * 1000) / 1000);
}

function print(title: string, header: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const line = (cells: readonly Cell[]): string => `| ${cells.map(format).join(' | ')} |`;
  process.stdout.write(
    `\n${title}\n\n${[line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n')}\n`,
  );
}

const units: readonly RooflineUnit[] = [
  ...(['tensor core', 'MUFU', 'FMA', 'shared memory', 'issue', 'tensor memory', 'TMA'] as const),
];

function clocksOfWork(work: CtaCounters): readonly Cell[] {
  const result = roofline(work, rates);
  return [
    ...units.map((unit) => clocksOf(result.lines, unit)),
    ...[operandClocks(result), result.bound ?? 'none'],
  ];
}

it.runIf(printsAll)('prints the clocks of a block', () => {
  const rows = ([1, 2] as const).flatMap((ctas) =>
    [128, 256].flatMap((queries) =>
      ctas === 2 && queries === 128
        ? []
        : [true, false].map((isTuned): readonly Cell[] => {
            const overrides = isTuned ? {} : { exp2: hardwareOnly };
            const setting = { queries: queries * ctas, qkDim: 128, vDim: 128, ctas, overrides };
            const work = blockWork(setting);
            const { polynomialShare: share } = exponentialSplit(work);
            return [ctas, queries, share, ...clocksOfWork(work)];
          }),
    ),
  );
  expect(rows).toHaveLength(6);
  print(
    'Clocks of one CTA for one more block of 128 keys, head dimension 128',
    ['CTAs', 'rows of a CTA', 'polynomial', ...units, 'operands of MMAs', 'bound'],
    rows,
  );
});

it.runIf(printsAll)('prints the bytes that pairs save', () => {
  const names = ['Q → mma', 'K → mma', 'V → mma', 'TMA → K', 'TMA → V'];
  const rows = [
    [64, 64],
    [128, 128],
    [192, 128],
  ].flatMap(([qkDim, vDim]) =>
    ([1, 2] as const).map((ctas): readonly Cell[] => {
      const { sharedBytes } = blockWork({ queries: 512, qkDim, vDim, ctas });
      return [`${qkDim}, ${vDim}`, ctas, ...names.map((name) => sharedBytes[name])];
    }),
  );
  expect(rows).toHaveLength(6);
  print(
    'Bytes of shared memory of one CTA for one more block, 512 queries',
    ['head dimensions', 'CTAs', ...names],
    rows,
  );
});

it.runIf(printsAll)('prints the polynomial shares that would balance', () => {
  const choices: readonly [number, number, boolean, 1 | 2][] = [
    [64, 64, false, 1],
    [128, 128, false, 2],
    [128, 128, true, 1],
    [192, 128, false, 2],
    [192, 128, true, 1],
  ];
  const rows = choices.map(([qkDim, vDim, causal, ctas]): readonly Cell[] => {
    const pattern = exp2Pattern({
      headDim: qkDim,
      causal,
      ctas,
      architecture: 'sm_100',
      inputBits: 16,
    });
    const settingOf = (exp2: typeof hardwareOnly) => ({
      queries: 256 * ctas,
      qkDim,
      vDim,
      ctas,
      overrides: { exp2 },
    });
    const at = (exp2: typeof hardwareOnly) => {
      const work = blockWork(settingOf(exp2));
      return { share: exponentialSplit(work).polynomialShare, roofline: roofline(work, rates) };
    };
    const tuned = at({ ...pattern, degree: 3 });
    expect(tuned.share).toBe(polynomialShare(pattern));
    const points = [at(hardwareOnly), tuned] as const;
    const clocks = (unit: RooflineUnit): string =>
      points.map((point) => format(clocksOf(point.roofline.lines, unit))).join(' → ');
    const timed = [hardwareOnly, { ...pattern, degree: 3 } as const]
      .map((exp2) => format(timedBlock(settingOf(exp2))))
      .join(' → ');
    const balanced = (among: readonly RooflineUnit[]): string => {
      const best = balancedShare(points, among);
      return `${format(best.share)} (${format(best.clocks)} clocks)`;
    };
    return [
      ...[`${qkDim}, ${vDim}`, causal ? 'causal' : 'full', ctas],
      ...[clocksOf(points[0].roofline.lines, 'tensor core'), clocks('MUFU'), clocks('FMA')],
      ...[clocks('issue'), balanced(['tensor core', 'MUFU'])],
      ...[balanced(['tensor core', 'MUFU', 'FMA'])],
      ...[balanced(['tensor core', 'MUFU', 'FMA', 'issue']), tuned.share, timed],
    ];
  });
  print(
    'The share of exponentials by polynomial; clocks without → with the tuned share',
    [
      ...['head dimensions', 'mask', 'CTAs', 'tensor core', 'MUFU', 'FMA', 'issue'],
      ...['MUFU = MMA', 'with FMA', 'with issue', 'tuned', 'timed'],
    ],
    rows,
  );
});

function capture(start: string): Problem {
  const { name, format, causal, scale } = readManifest().files.find((file) =>
    file.name.startsWith(start),
  )!;
  const { tensors } = readStoredFile(new URL(name, attentionFolder));
  const tensor = (key: 'q' | 'k' | 'v'): Problem['q'] => ({
    format,
    shape: [...tensors[key].shape],
    data: new Uint16Array(Uint8Array.from(tensors[key].bytes).buffer),
  });
  return {
    q: tensor('q'),
    k: tensor('k'),
    v: tensor('v'),
    scale,
    causal,
    window: null,
    softcap: null,
  };
}

it.runIf(printsAll)(
  'prints the traffic of rescales',
  async () => {
    const setting = { queries: 2048, keys: 2048, qkDim: 128, vDim: 128 };
    const problems: readonly [string, Problem][] = [
      ['normal, 2048 × 2048 × 128', normalProblem(setting)],
      ...['01-normal', '02-large', '07-outlier', '08-threshold'].map(
        (start) => [start, capture(start)] as [string, Problem],
      ),
    ];
    const rows: (readonly Cell[])[] = [];
    for (const [name, problem] of problems)
      for (const rescaleThreshold of [0, 8]) {
        const all = sumOfCounters(countersOf(problem, { overrides: { rescaleThreshold } }));
        const dim = problem.v.shape[problem.v.shape.length - 1];
        const traffic = rescaleTraffic(all, dim);
        const { lines } = roofline(all, rates);
        const settings = new Map([['rescale.threshold', String(rescaleThreshold)]]);
        const { rowRescales } = (await emulate(problem, 'fa4', { settings })).counters;
        rows.push([
          ...[name, rescaleThreshold, rowRescales!],
          ...[traffic.votes, traffic.rescales],
          ...[traffic.bytesToRegisters, traffic.bytesToTensorMemory, traffic.finalBytes],
          ...[clocksOf(lines, 'tensor memory') / clocksOf(lines, 'tensor core')],
          clocksOf(lines, 'FMA') / clocksOf(lines, 'tensor core'),
        ]);
      }
    expect(rows).toHaveLength(2 * problems.length);
    print(
      'Rescales of O, whole problems',
      [
        ...['problem', 'threshold', 'rows that rescale', 'warps × blocks'],
        ...['warps that rescale', 'bytes O → registers'],
        ...['bytes registers → O', 'bytes read at the end', 'tensor memory / MMA', 'FMA / MMA'],
      ],
      rows,
    );
  },
  300_000,
);
