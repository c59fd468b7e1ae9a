import { describe, expect, it } from 'vitest';
import type { GlobalFootprint } from '../../../src/machine/index.js';
import type { Launch } from '../../../src/ptx/launch/index.js';
import {
  joinParts,
  prepareLaunch,
  type ClusterNumbers,
  type GridPart,
  type PreparedLaunch,
} from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { turns } from '../../setup/turns.js';
import { openCaptured } from './captured-launch.js';
import { launchBody, type BodyOptions } from './run-body.js';

const inTurn = turns(import.meta.url);

/** The clusters of a launch run in so many parts, each by itself. */
function parted(prepared: PreparedLaunch, launch: Launch, parts: number): GridPart[] {
  const clusters = launch.grid.reduce((all, one, axis) => (all * one) / launch.cluster[axis], 1);
  return Array.from({ length: parts }, (_, i) => {
    const footprint: GlobalFootprint = new Map();
    const [first, end] = [i, i + 1].map((part) => Math.floor((part * clusters) / parts));
    const runs = (cluster: number) => cluster >= first && cluster < end;
    return { run: prepared.run({ footprint, runs }), footprint };
  });
}

describe('clusters of a grid that run by themselves', () => {
  inTurn.each([
    'triton-softmax',
    'triton-layer-norm',
    'triton-sm80-d64',
    'triton-wgmma-d64',
    'triton-sm90-matmul-bf16-warps',
    'triton-sm100-matmul-e4m3',
    'nvcc-cluster-sum',
    'triton-tma-d128',
  ])('come to what all of them together do: %s', async (name) => {
    const { module, launch, options } = await openCaptured(name);
    const prepared = prepareLaunch(module, launch, options);
    const whole = prepared.run();
    const joined = joinParts(launch, parted(prepared, launch, 2));
    expect(joined).not.toBeNull();
    for (const [tensor, bytes] of whole.tensors)
      expect(Buffer.compare(joined!.tensors.get(tensor)!, bytes), tensor).toBe(0);
    expect(joined).toEqual(whole);
  });

  inTurn.each(['triton-softmax', 'triton-layer-norm', 'triton-sm80-d64', 'nvcc-cluster-sum'])(
    'may go on elsewhere after the first of them: %s',
    async (name) => {
      const { module, launch, options } = await openCaptured(name);
      const prepared = prepareLaunch(module, launch, options);
      const whole = prepared.run();
      const footprint: GlobalFootprint = new Map();
      const isEnough = (_: unknown, { started, ended }: ClusterNumbers) =>
        started === 1 && ended === 1;
      const first = { run: prepared.run({ footprint, isEnough }), footprint };
      expect(first.run.clusters).toBe(1);
      const others: GlobalFootprint = new Map();
      const runs = (cluster: number) => cluster > 0;
      const rest = { run: prepared.run({ footprint: others, runs }), footprint: others };
      expect(joinParts(launch, [first, rest])).toEqual(whole);
    },
  );

  it('say nothing of all schedules where their accesses are too many to compare', async () => {
    const body = 'ld.global.u32 %r3, [%rd2];';
    const { ptx, launch } = await launchBody(body, { ctas: 2049 });
    const prepared = prepareLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
    const runs = (number: number) => ({ runs: (cluster: number) => cluster === number });
    const parts = [0, 1].map((number): GridPart => {
      const footprint: GlobalFootprint = new Map();
      return { run: prepared.run({ footprint, ...runs(number) }), footprint };
    });
    expect(parts.map(({ run }) => run.speaksForAllSchedules)).toEqual([true, true]);
    expect(joinParts(launch, parts)!.speaksForAllSchedules).toBe(false);
  });

  const partsOf = async (body: string, options: BodyOptions = {}) => {
    const { ptx, launch } = await launchBody(body, { ctas: 4, ...options });
    const prepared = prepareLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
    return joinParts(launch, parted(prepared, launch, 2));
  };

  it.each([
    ['add to one word', '@%p0 red.global.add.u32 [%rd0], 1;'],
    ['write one word', 'st.global.u32 [%rd0], 7;'],
    [
      'write bytes of one word',
      'cvt.u64.u32 %rd3, %r1; add.u64 %rd3, %rd3, %rd0; st.global.u8 [%rd3], 7;',
    ],
    [
      'read what others write',
      'ld.global.u32 %r3, [%rd0]; setp.eq.u32 %p1, %r1, 3; @%p1 st.global.u32 [%rd0], 7;',
    ],
    ['have a finding', 'ld.global.u32 %r3, [%rd0+65536];'],
  ])('have to run together where they %s', async (_, body) => {
    expect(await partsOf(body)).toBeNull();
  });

  it('may all read one word', async () => {
    expect(await partsOf('ld.global.u32 %r3, [%rd2]; st.global.u32 [%rd1], %r3;')).not.toBeNull();
  });
});
