import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findHarmlessRaces,
  liveValues,
  outputValues,
  racingLoads,
} from '../../src/meaning/certify/index.js';
import { InfluenceDomain } from '../../src/meaning/domains/index.js';
import { createRecorder, MarkedReads } from '../../src/meaning/record/index.js';
import { valueFormat } from '../../src/meaning/trace/index.js';
import { runLaunch } from '../../src/ptx/run/index.js';
import { parsePtx } from '../../src/ptx/syntax/index.js';
import { launchBody } from '../ptx/run/run-body.js';
import { programs, traceOf } from './random-trace.js';

/** Two warps load the same numbers; the first one doubles them where they lie, and the second one goes on. */
const inPlace = (secondWarp: string, load = 'ld.global.f32 %f0, [%rd3];') => `
  and.b32 %r3, %r0, 31;
  mad.wide.u32 %rd3, %r3, 4, %rd2;
  setp.lt.u32 %p1, %r0, 32;
  ${load}
  add.f32 %f1, %f0, %f0;
  @%p1 st.global.f32 [%rd3], %f1;
  ${secondWarp}`;

async function racesOf(body: string) {
  const declarations = '.reg .f32 %f<8>; .shared .align 16 .b8 cells[512];';
  const input = new Uint8Array(Float32Array.from({ length: 32 }, (_, i) => i + 1.5).buffer);
  const { ptx, launch } = await launchBody(body, { declarations, input });
  const module = parsePtx(ptx);
  const { findings } = runLaunch(module, launch, { file: 'kernel.ptx' });
  const recorder = createRecorder([{ tensor: 'in', format: valueFormat('f32')! }]);
  const sites = racingLoads(findings);
  const reads = new MarkedReads(recorder, (site) => sites.has(site));
  const again = runLaunch(module, launch, { file: 'kernel.ptx', tracer: reads.tracer });
  expect(again.findings).toEqual(findings);
  const outputs = ['in', 'out'].map((name) => outputValues(recorder, name, 'f32')!.values);
  const races = findings.filter(({ kind }) => kind === 'race');
  expect(races.length).toBeGreaterThan(0);
  return { races, harmless: findHarmlessRaces(findings, reads, outputs) };
}

describe('races', () => {
  it.each([
    ['is used no more', ''],
    ['becomes a number that is not stored', 'mul.f32 %f2, %f1, %f1;'],
    ['stays in shared memory', 'mov.u32 %r4, cells; @!%p1 st.shared.f32 [%r4], %f1;'],
    [
      'is stored where another number is stored later',
      'mov.f32 %f3, 0f3F800000; @!%p1 st.global.f32 [%rd1], %f1; @!%p1 st.global.f32 [%rd1], %f3;',
    ],
  ])('are harmless where what is loaded %s', async (_, secondWarp) => {
    const { races, harmless } = await racesOf(inPlace(secondWarp));
    expect(harmless).toEqual(races);
  });

  const compare = 'setp.gt.f32 %p2, %f1, 0f00000000;';
  it.each([
    ['is stored', '@!%p1 st.global.f32 [%rd1], %f1;'],
    [
      'is multiplied by zero, and stored',
      'mul.f32 %f2, %f1, 0f00000000; @!%p1 st.global.f32 [%rd1], %f2;',
    ],
    [
      'decides what is stored',
      `${compare} selp.u32 %r4, 1, 2, %p2; @!%p1 st.global.u32 [%rd1], %r4;`,
    ],
    ['decides where to go', `${compare} @%p2 bra DONE; @!%p1 st.global.u32 [%rd1], %r0; DONE:`],
    [
      'decides together',
      `${compare} vote.sync.any.pred %p3, %p2, -1; @%p3 st.global.u32 [%rd1], %r0;`,
    ],
    [
      'is an address',
      'cvt.rzi.u32.f32 %r4, %f1; and.b32 %r4, %r4, 60; mad.wide.u32 %rd4, %r4, 1, %rd0; @!%p1 st.global.u32 [%rd4], %r0;',
    ],
    [
      'is taken apart',
      'mov.b32 {%h0, %h1}, %f1; mov.b32 %r4, {%h1, %h0}; @!%p1 st.global.u32 [%rd1], %r4;',
    ],
    [
      'is sent to a lane',
      'mov.b32 %r4, %f1; shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; @!%p1 st.global.u32 [%rd1], %r5;',
    ],
    ['is added to', '@!%p1 atom.global.add.f32 %f2, [%rd1], %f1;'],
  ])('are kept where what is loaded %s', async (_, secondWarp) => {
    const { harmless } = await racesOf(inPlace(secondWarp));
    expect(harmless).toEqual([]);
  });

  it('are kept where only a part of a number is loaded', async () => {
    const load = 'ld.global.u16 %h0, [%rd3]; mov.b32 %r4, {%h0, %h0}; mov.b32 %f0, %r4;';
    expect((await racesOf(inPlace('', load))).harmless).toEqual([]);
  });
});

describe('live values', () => {
  it('are those that reach a value, with weight or in the structure', () => {
    fc.assert(
      fc.property(programs, fc.nat(), (program, place) => {
        const { trace, values } = traceOf(program);
        const domain = new InfluenceDomain(trace, (_input, element) => element);
        domain.extend();
        const last = values[place % values.length];
        const { sets, withWeight, inStructure } = domain;
        const reached = [...sets.labelsOf(sets.union(withWeight[last], inStructure[last]))];
        const live = liveValues(trace, [last]);
        const inputs = program.inputs.map((_, i) => i).filter((i) => live[values[i]] === 1);
        expect(inputs).toEqual(reached);
      }),
      { numRuns: 1000 },
    );
  });
});
