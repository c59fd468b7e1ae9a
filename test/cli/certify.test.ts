import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readKernel, readManifest } from '../../fixtures/ptx/unpack.mjs';
import { writeSafetensors } from '../../src/io/index.js';
import type { Certificate } from '../../src/jobs/index.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';
import { smallTensor, writeLaunch, x } from './small-launch.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-certify-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);

const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/certificate.schema.json', import.meta.url), 'utf8'),
) as object;
const validate = new Ajv2020({ allErrors: true }).compile(schema);

/** The certificate of a launch; it has the form of its schema. */
async function certify(...args: readonly string[]) {
  const { stdout, status } = await runInProcess('certify', ...args, '--json', '-');
  const certificate = JSON.parse(stdout) as Certificate;
  validate(certificate);
  expect(validate.errors).toBeNull();
  return { certificate, status };
}

/** What is printed, as one line. */
async function printed(...args: readonly string[]) {
  const { stdout, status } = await runInProcess('certify', ...args);
  return { text: stdout.replace(/\s+/g, ' '), status };
}

const hopper = 'triton-sm90-attend-tma-d64-causal-warps';

/** Writes an attention kernel of Triton as a template, with its text changed. */
async function writeTemplate(name: string, change: (ptx: string) => string): Promise<string> {
  const kernel = readManifest().kernels.find(({ name: one }) => one === hopper)!;
  mkdirSync(at(name));
  writeFileSync(join(at(name), 'kernel.ptx'), change(readKernel(kernel).ptx));
  writeFileSync(join(at(name), 'template.json'), JSON.stringify(kernel.template));
  return join(at(name), 'template.json');
}

const problem = at('problem.safetensors');

beforeAll(async () => {
  const frame = { queries: 128, keys: 128, dim: 64 };
  const { q, k, v } = filledProblem(frame, sumNormalNumbers(uniformNumbers(5)));
  await writeSafetensors(problem, { q, k, v }, { causal: 'true' });
});

describe('flashproof certify', () => {
  it('proves a kernel of Triton to be attention with its fp32 log2 e, and attributes its error', async () => {
    const path = await writeTemplate('as-compiled', (ptx) => ptx);
    const { certificate, status } = await certify(path, '--problem', problem);
    expect(certificate.status).toBe('certified');
    expect(status).toBe(0);
    const [out, lse] = certificate.algebra!;
    expect(out.constant).toBe('scale·fp32(log2 e)');
    expect(out.distance).toBeLessThan(1e-28);
    expect(out.idealDistance).toBeGreaterThan(1e-9);
    expect(lse.holds).toBe(true);
    for (const { coverage, rounding } of certificate.outputs) {
      const { meaning, ...others } = coverage;
      expect(meaning).toBeGreaterThan(0);
      expect(others).toEqual({ lost: 0, decided: 0, constant: 0, unwritten: 0 });
      expect(rounding!.unattributed).toBeLessThan(1e-2);
      const sum = rounding!.shares.reduce((all, { share }) => all + share, 0);
      expect(sum).toBeCloseTo(1, 6);
    }
    const [most] = certificate.outputs[0].rounding!.shares;
    expect(most.site).toContain('cvt.rn.bf16x2.f32');
  });

  it('refutes a constant that is one ulp off, which no tolerance sees', async () => {
    const path = await writeTemplate('one-ulp', (ptx) =>
      ptx.replaceAll('0f3FB8AA3B', '0f3FB8AA3C'),
    );
    const { text, status } = await printed(path, '--problem', problem);
    expect(text).toMatch(/^REFUTED: attend_tma/);
    expect(text).toContain('a factor of q·k that is no known constant');
    expect(status).toBe(1);
  });

  it('names the scale of a kernel whose contract has another, and where a kernel is farthest from the contract', async () => {
    const path = 'examples/triton/recorded/sm_100-lines/launch.json';
    const { contract } = JSON.parse(readFileSync(path, 'utf8')) as { contract: object };
    const other = async (name: string, change: object) => {
      writeFileSync(at(name), JSON.stringify({ ...contract, ...change }));
      return printed(path, '--contract', at(name));
    };
    const ofScale = await other('scale.json', { scale: 0.13 });
    expect(ofScale.text).toContain('as of a scale of 0.125 where the contract has 0.13 Memory');
    // A causal mask takes most keys from the first row and none from the last.
    const ofMask = await other('mask.json', { causal: true });
    expect(ofMask.text).toMatch(/^REFUTED: .*; worst at batch 0, head 0, row \d, column \d+ \(/);
  });

  it('shows the lines of the source that it is given, and refuses one that the PTX was not compiled from', async () => {
    const path = 'examples/triton/recorded/sm_100-lines/launch.json';
    const page = at('page.html');
    const pageWith = async (...words: readonly string[]) => {
      await runInProcess('certify', path, '--html', page, ...words, '--quiet');
      return readFileSync(page, 'utf8');
    };
    const stored = 'tl.store(o + places, (output / total[:, None])';
    expect(await pageWith('--source', 'examples/triton/attention.py')).toContain(stored);
    const bare = await pageWith();
    expect(bare).not.toContain(stored);
    expect(bare).toMatch(
      /attention\.py:39<\/th>.*?<code>PTX line \d+: cvt\.rn\.bf16x2\.f32 %r\d+, %r\d+, %r\d+;/,
    );
    const foreign = ['--html', page, '--source', 'examples/triton/backward.py'];
    expect(await refusal('certify', path, ...foreign)).toContain(
      'backward.py: the PTX was compiled from attention.py, standard.py',
    );
    const other = ['--html', page, '--source', at('none.py')];
    expect(await refusal('certify', path, ...other)).toContain('none.py');
  });

  it('tells equal bits of other expressions from equal expressions', async () => {
    const tensors = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];
    const one = await writeLaunch(mkdtempSync(at('one-')), tensors);
    const other = await writeLaunch(mkdtempSync(at('other-')), tensors);
    const same = await certify(one, '--same', other);
    expect(same.certificate.same!.outputs[0]).toMatchObject({ rows: 2, same: 2, other: 0 });
    expect(same.status).toBe(0);
    // (x · a) + 1 and 1 − x · (−a) have the same bits.
    const folder = other.replace(/launch\.json$/, 'kernel.ptx');
    const ptx = readFileSync(folder, 'utf8')
      .replace('mul.f32 %f3, %f2, %f1;', 'neg.f32 %f1, %f1;\n  mul.f32 %f3, %f2, %f1;')
      .replace('add.f32 %f4, %f3, 0f3F800000;', 'sub.f32 %f4, 0f3F800000, %f3;');
    writeFileSync(folder, ptx);
    const { certificate, status } = await certify(one, '--same', other);
    const [y] = certificate.same!.outputs;
    expect(y).toMatchObject({ same: 0, other: 2, otherWithEqualBits: 96 });
    expect(y.parting!.here.what).toBe('add.f32');
    expect(y.parting!.there.what).toBe('sub.f32');
    expect(status).toBe(1);
  });

  it('does not call a kernel certified that leaves elements unwritten', async () => {
    const tensors = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];
    const path = await writeLaunch(mkdtempSync(at('half-')), tensors, { grid: [1, 1, 1] });
    const { text, status } = await printed(path);
    expect(text).toMatch(/^NOT CERTIFIED: scale .*: 48 elements of y are not written/);
    expect(status).toBe(1);
  });

  describe('is not talked into a certificate', () => {
    const folder = () => mkdtempSync(at('empty-'));
    const tensors = () => [smallTensor('x', x), smallTensor('y', new Float32Array(96))];

    it('by a launch without outputs', async () => {
      const path = await writeLaunch(folder(), tensors(), { outputs: [] });
      const { certificate, status } = await certify(path);
      expect(certificate.reasons).toEqual(['the launch names no output']);
      expect([certificate.status, status]).toEqual(['incomplete', 1]);
    });

    it('by outputs that depend on no input', async () => {
      const path = await writeLaunch(folder(), tensors());
      const ptx = path.replace(/launch\.json$/, 'kernel.ptx');
      writeFileSync(ptx, readFileSync(ptx, 'utf8').replace('[%rd5], %f4', '[%rd5], 0f3F800000'));
      const { certificate } = await certify(path);
      expect(certificate.reasons).toEqual(['no element of y depends on an input']);
      expect(certificate.status).toBe('incomplete');
    });

    it('by outputs of a type whose values are not followed', async () => {
      const [tensor] = tensors();
      const complex = { ...tensor, name: 'y', dtype: 'C64', shape: [48] };
      const path = await writeLaunch(folder(), [tensor, complex]);
      const { certificate } = await certify(path);
      expect(certificate.reasons).toEqual(['values of y are not followed, which are C64']);
      expect(certificate.status).toBe('incomplete');
    });

    it('by lost values that nothing is compared of', async () => {
      const path = await writeLaunch(folder(), tensors());
      const lossy = await writeLaunch(folder(), tensors());
      const ptx = lossy.replace(/launch\.json$/, 'kernel.ptx');
      const masked = 'mov.b32 %r4, %f4; and.b32 %r4, %r4, 0x0000FFFF; mov.b32 %f4, %r4;';
      writeFileSync(ptx, readFileSync(ptx, 'utf8').replace('st.global', `${masked} st.global`));
      const { certificate } = await certify(path, '--same', lossy);
      expect(certificate.reasons).toEqual([`2 rows of y have lost values, here or in ${lossy}`]);
      expect(certificate.status).toBe('incomplete');
    });
  });

  it('says what reaches a row that must not, where its weight is nothing in any real value', async () => {
    // A mask that is added, a million, in place of an infinity that is chosen: the weight underflows, the maximum sees the score.
    const chosen = /selp\.f32\s+(%\w+), (%\w+), 0fFF800000, (%\w+);/g;
    const path = await writeTemplate('added-mask', (ptx) => {
      expect(ptx.match(chosen)!.length).toBeGreaterThan(0);
      const added =
        '{ .reg .f32 %mask; selp.f32 %mask, 0f00000000, 0fC9742400, $3; add.f32 $1, $2, %mask; }';
      return ptx.replace(chosen, added);
    });
    const { certificate, status } = await certify(path, '--problem', problem);
    expect(certificate.algebra!.every(({ holds }) => holds)).toBe(true);
    const [out, lse] = certificate.influence!;
    for (const { withWeight, unknown } of [out, lse]) {
      expect(unknown).toBe(0);
      expect(withWeight.elements).toBeGreaterThan(0);
      for (const { row, names } of withWeight.worst)
        for (const name of names) expect(Number(/^key (\d+)$/.exec(name)![1])).toBeGreaterThan(row);
    }
    expect(certificate.reasons).toEqual([
      expect.stringMatching(
        /^[\d,]+ elements of out depend on what must not reach them \(row \d+ on key \d+\)$/,
      ),
      expect.stringMatching(
        /^[\d,]+ elements of lse depend on what must not reach them \(row \d+ on key \d+\)$/,
      ),
    ]);
    expect([certificate.status, status]).toEqual(['incomplete', 1]);
  });

  it('names races that change no output, and does not count them', async () => {
    // The second warp stores the double of what the first one has perhaps doubled.
    const racy = `.version 8.7
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y) {
  .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<9>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.lt.u32 %p1, %r1, 32;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  @%p1 st.global.f32 [%rd4], %f2;
  @!%p1 st.global.f32 [%rd5], %f2;
  ret;
}
`;
    const orderOf = async (outputs: readonly string[]) => {
      const path = await writeLaunch(
        mkdtempSync(at('racy-')),
        ['x', 'y'].map((name) => smallTensor(name, x)),
        {
          entry: 'twice',
          grid: [1, 1, 1],
          block: [64, 1, 1],
          outputs,
          parameters: [{ tensor: 'x' }, { tensor: 'y' }],
        },
      );
      writeFileSync(path.replace(/launch\.json$/, 'kernel.ptx'), racy);
      return (await certify(path)).certificate.run;
    };
    const harmless = await orderOf(['x']);
    expect(harmless.harmlessRaces.map(({ races }) => races)).toEqual([1]);
    expect(harmless.pass).toBe(true);
    expect(harmless.sentence).toContain('no race but one that changes no output');
    const harmful = await orderOf(['x', 'y']);
    expect(harmful.harmlessRaces).toEqual([]);
    expect(harmful.pass).toBe(false);
  });

  it('tells atomics in any order from a fixed one, though their sums agree', async () => {
    const kernel = (add: string) => `.version 8.7
.target sm_90a
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 y) {
  .reg .b32 %r<3>; .reg .b64 %rd<5>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  ${add}
  ret;
}
`;
    // Sums of powers of two, which are exact in any order.
    const powers = x.map((_, i) => 2 ** (i % 5));
    const schedulesOf = async (add: string) => {
      const path = await writeLaunch(
        mkdtempSync(at('sum-')),
        [smallTensor('x', powers), smallTensor('y', new Float32Array(96))],
        {
          entry: 'sum',
          grid: [8, 1, 1],
          block: [1, 1, 1],
          parameters: [{ tensor: 'x' }, { tensor: 'y' }],
        },
      );
      writeFileSync(path.replace(/launch\.json$/, 'kernel.ptx'), kernel(add));
      const { certificate } = await certify(path, '--schedules', '3');
      return certificate;
    };
    const inAnyOrder = await schedulesOf('red.global.add.f32 [%rd2], %f1;');
    const [sums] = inAnyOrder.schedules!.outputs;
    expect(sums).toMatchObject({ rows: 2, other: 1, otherWithEqualBits: 1 });
    expect(inAnyOrder.reasons).toContain(
      `1 row of y have another expression in the schedule ${sums.first!.schedule}`,
    );
    // Whoever comes first, unless it is the first CTA, stores beyond the tensor.
    const astray = await schedulesOf(`
  { .reg .pred %p<3>; .reg .b32 %came; atom.global.add.u32 %came, [%rd2+8], 1; setp.eq.u32 %p1, %came, 0;
    setp.ne.and.u32 %p2, %r1, 0, %p1; @%p2 st.global.f32 [%rd1+1048576], %f1; }`);
    expect(astray.run.pass).toBe(true);
    const [failed] = astray.schedules!.failed;
    expect(astray.reasons).toContain(`the run has findings in the schedule ${failed}`);
    expect(astray.status).toBe('refuted');
    const alone = await schedulesOf('add.s64 %rd4, %rd2, %rd3; st.global.f32 [%rd4], %f1;');
    expect(alone.schedules).toMatchObject({
      runs: 3,
      failed: [],
      outputs: [{ other: 0, first: null }],
    });
  });

  it('takes --ptx for the launch alone, not for that which it is compared with', async () => {
    const tensors = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];
    const path = await writeLaunch(mkdtempSync(at('build-')), tensors);
    const build = at('another.ptx');
    const ptx = readFileSync(path.replace(/launch\.json$/, 'kernel.ptx'), 'utf8');
    writeFileSync(build, ptx.replace('mul.f32', 'mul.rz.f32'));
    const { certificate } = await certify(path, '--ptx', build, '--same', path);
    expect(certificate.same!.outputs[0]).toMatchObject({ same: 0, other: 2 });
  });

  it('refuses what it cannot compare, in one line', async () => {
    const tensors = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];
    const path = await writeLaunch(mkdtempSync(at('alone-')), tensors);
    const other = await writeLaunch(mkdtempSync(at('of-x-')), tensors, { outputs: ['x'] });
    expect(await refusal('certify', path, '--same', other)).toContain('has no output y');
    expect(await refusal('certify', path, '--contract', at('none.json'))).toContain('none.json');
  });
});
