import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { openTensorFile, type RawTensor, writeRawTensors } from '../../src/io/index.js';
import type { Certificate } from '../../src/jobs/index.js';
import { runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-certify-recurrence-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const recorded = fileURLToPath(
  new URL('../../examples/linear-attention/recorded/fused-recurrent-sm_90/', import.meta.url),
);
const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/certificate.schema.json', import.meta.url), 'utf8'),
) as object;
const validate = new Ajv2020({ allErrors: true }).compile(schema);

async function certify(path: string): Promise<Certificate> {
  const { stdout } = await runInProcess('certify', path, '--json', '-');
  const certificate = JSON.parse(stdout) as Certificate;
  validate(certificate);
  expect(validate.errors).toBeNull();
  return certificate;
}

interface LaunchJson {
  readonly parameters: readonly Readonly<Record<string, unknown>>[];
  readonly contract: Readonly<Record<string, unknown>>;
}

/** What of the recorded launch is changed. */
interface Changes {
  readonly ptx?: (text: string) => string;
  readonly launch?: (launch: LaunchJson) => object;
  readonly tensor?: (tensor: RawTensor) => RawTensor;
}

/** A changed copy of the recorded launch. */
async function copied({ ptx, launch, tensor }: Changes): Promise<string> {
  const folder = mkdtempSync(join(scratch, 'launch-'));
  cpSync(recorded, folder, { recursive: true });
  const [kernel, path, tensors] = ['kernel.ptx', 'launch.json', 'tensors.safetensors'].map((file) =>
    join(folder, file),
  );
  if (ptx) writeFileSync(kernel, ptx(readFileSync(kernel, 'utf8')));
  if (launch)
    writeFileSync(
      path,
      JSON.stringify(launch(JSON.parse(readFileSync(path, 'utf8')) as LaunchJson)),
    );
  if (tensor) {
    const file = await openTensorFile(tensors);
    const all: RawTensor[] = [];
    for (const { name, dtype, shape } of file.entries.values())
      all.push(tensor({ name, dtype, shape, bytes: await file.readBytes(name) }));
    await file.close();
    await writeRawTensors(tensors, all);
  }
  return path;
}

/** Replaces every match of each pattern, of which each must have one. */
function edited(...edits: readonly (readonly [RegExp, string])[]): (text: string) => string {
  return (text) =>
    edits.reduce((now, [pattern, by]) => {
      const after = now.replaceAll(pattern, by);
      expect(after).not.toBe(now);
      return after;
    }, text);
}

describe("the certificate of fla's recurrent kernel", () => {
  it('compares all tokens, heads and columns, and names the constants', async () => {
    const certificate = await certify(join(recorded, 'launch.json'));
    expect(certificate).toMatchObject({
      status: 'certified',
      reasons: [],
      contract: { kind: 'recurrent', family: 'gated-delta' },
      decisions: [],
    });
    const [out, state] = certificate.algebra!;
    const same = { without: 0, isFactorTold: true, holds: true, weights: null, delta: null };
    // 12 tokens of 2 heads, and 32 key dimensions of 2 heads of 2 sequences.
    expect(out).toMatchObject({ ...same, output: 'out', rows: 24, compared: 384, telling: 384 });
    expect(state).toMatchObject({ ...same, output: 'final_state', rows: 128, compared: 2048 });
    expect(out.constant).toBe('2^(fp32(log2 e)·g) and fp32(scale)');
    expect(state.constant).toBe('2^(fp32(log2 e)·g)');
    for (const { distance, idealDistance, constantError } of [out, state]) {
      expect(distance).toBeLessThan(1e-30);
      expect(idealDistance).toBeGreaterThan(1e-10);
      expect(constantError).toBeCloseTo(-1.33e-8, 9);
    }
  });

  it('says that no later token, other head or other sequence reaches an output', async () => {
    const { influence } = await certify(join(recorded, 'launch.json'));
    const none = { elements: 0 };
    expect(influence!.map(({ name }) => name)).toEqual(['out', 'final_state']);
    for (const one of influence!)
      expect(one).toMatchObject({ unknown: 0, withWeight: none, inStructure: none, missed: none });
  });

  it('is written in words', async () => {
    const { stdout } = await runInProcess('certify', join(recorded, 'launch.json'));
    const text = stdout.replaceAll(/\s+/g, ' ');
    expect(text).toMatch(
      /Algebra of out: the recurrence gated-delta: real values within \S+ with 2\^\(fp32\(log2 e\)·g\) and fp32\(scale\), log2 e -1\.3e-8 from exact; \S+ from the exact recurrence \(384 elements in 24 rows\)/,
    );
    expect(text).toContain(
      'Influence on out: none of 384 elements depends on a token or state that must not reach it',
    );
  });
});

/** Kernels of other recurrences, by what they do in place of this one; %r43 is the decay, %r41 is β, %r149 to %r156 are the state. */
const others: Readonly<Record<string, Changes>> = {
  'swaps β and the decay': {
    ptx: edited(
      [/(mul\.f32 \t%r5[1-8], %r1\d\d), %r43;/g, '$1, %r41;'],
      [/(mul\.f32 \t%r10[3-6], %r\d+), %r41;/g, '$1, %r43;'],
    ),
  },
  'reads the state before it decays': {
    ptx: edited(
      [/%r58, %r46;/g, '%r153, %r46;'],
      [/%r57, %r46;/g, '%r154, %r46;'],
      [/%r56, %r46;/g, '%r155, %r46;'],
      [/%r55, %r46;/g, '%r156, %r46;'],
      [/%r54, %r45, %r62;/g, '%r152, %r45, %r62;'],
      [/%r53, %r45, %r61;/g, '%r151, %r45, %r61;'],
      [/%r52, %r45, %r60;/g, '%r150, %r45, %r60;'],
      [/%r51, %r45, %r59;/g, '%r149, %r45, %r59;'],
    ),
  },
  'takes the gates of another head': {
    ptx: edited([/shl\.b64 \t%rd38, %rd32, 2;/g, 'shl.b64 \t%rd38, %rd30, 2;']),
  },
  'takes the values one token late': {
    ptx: edited(
      [/(\/\/ begin inline asm\n\tmov\.u32 %r27, %r29;)/g, '$1 mov.u32 %r200, %r27;'],
      [/\.reg \.b32 \t%r<\d+>;/g, '.reg .b32 \t%r<300>;'],
      [
        /(mov\.b32 \t\{%rs14, %rs15\}), %r27;/g,
        'mov.b32 \t%r201, %r202; mov.b32 \t%r202, %r27; $1, %r201;',
      ],
      [/\$L__BB0_2:/g, 'mov.b32 \t%r202, 0;\n$L__BB0_2:'],
    ),
  },
  'keeps the first gate': {
    ptx: edited([/add\.s64 \t%rd55, %rd55, 8;/g, 'add.s64 \t%rd55, %rd55, 0;']),
  },
  'writes without β': {
    ptx: edited([/mul\.f32 (\t%r10[3-6], %r\d+), %r41;/g, 'mov.b32 $1;']),
  },
  'reads the output before it writes': {
    ptx: edited([/%r40, %r153;/g, '%r40, %r58;'], [/%r39, %r149, %r107;/g, '%r39, %r51, %r107;']),
  },
  'has a log2 e that is one ulp off': {
    ptx: edited([/0f3FB8AA3B/g, '0f3FB8AA3C']),
  },
};

describe('a kernel', () => {
  inTurn.each(Object.keys(others))('that %s is refuted', async (name) => {
    const certificate = await certify(await copied(others[name]));
    expect(certificate.run.pass).toBe(true);
    expect(certificate.status).toBe('refuted');
    expect(certificate.reasons.join()).toMatch(
      /not the contract's: its real values are \S+ from it/,
    );
  });

  it('that takes the gates of another head is seen to depend on it', async () => {
    const { reasons, influence } = await certify(
      await copied(others['takes the gates of another head']),
    );
    const [out] = influence!;
    // All outputs of the second head: the first's gates reach them, and its own do not, of tokens with a state before them.
    expect(out.withWeight.elements).toBe(192);
    expect(out.missed.elements).toBe(192);
    expect(out.withWeight.worst[0].names[0]).toMatch(/^gate of token \d+, head 0$/);
    expect(reasons.join()).toMatch(/depend on what must not reach them \(row \d+ on gate of token/);
  });

  it('with another scale is the recurrence times a factor, which is named', async () => {
    const path = await copied({
      launch: ({ parameters, ...rest }) => ({
        ...rest,
        parameters: parameters.map((one) => ('f32' in one ? { f32: 0.25 } : one)),
      }),
    });
    const { status, reasons } = await certify(path);
    expect(status).toBe('refuted');
    expect(reasons).toEqual(["out is the recurrence's times 1.41421"]);
  });
});

/** A tensor with other bytes. */
const filled = (name: string, byte: number) => (tensor: RawTensor) =>
  tensor.name === name
    ? { ...tensor, bytes: new Uint8Array(tensor.bytes.length).fill(byte) }
    : tensor;

describe('a certificate of a recurrence is incomplete', () => {
  it('where all gates are 0, since any factor of them is the same', async () => {
    const { status, reasons } = await certify(await copied({ tensor: filled('g', 0) }));
    expect(status).toBe('incomplete');
    expect(reasons).toEqual([
      'the real values are those of any factor of the gates, so that none is told',
    ]);
  });

  it('where an input is no number', async () => {
    const { reasons } = await certify(await copied({ tensor: filled('v', 0xff) }));
    expect(reasons).toContain('out is not compared with the contract: v has infinities or NaNs');
  });

  it('where values and states are zeros', async () => {
    const zeros = filled('v', 0);
    const path = await copied({ tensor: (tensor) => filled('h0', 0)(zeros(tensor)) });
    const { reasons } = await certify(path);
    expect(reasons.join()).toContain('no element of out tells the recurrence from other laws');
  });
});

describe('a contract of a recurrence', () => {
  const refused = async (change: (contract: LaunchJson['contract']) => object) => {
    const path = await copied({
      launch: ({ contract, ...rest }) => ({ ...rest, contract: change(contract) }),
    });
    const { stderr, status } = await runInProcess('certify', path).catch((error: unknown) => ({
      stderr: String(error),
      status: 2,
    }));
    expect(status).toBe(2);
    return stderr;
  };

  it('names a family, its tensors and nothing else', async () => {
    expect(await refused((own) => ({ ...own, family: 'gated-deltas' }))).toContain(
      'has the family "gated-deltas"; did you mean "gated-delta"?',
    );
    expect(await refused((own) => ({ ...own, family: 'delta' }))).toContain('delta has no g');
    expect(await refused((own) => ({ ...own, causal: true }))).toContain('has no member "causal"');
    expect(await refused(({ beta: _, ...own }) => own)).toContain(
      'gated-delta needs beta of shape',
    );
    expect(await refused(({ q: _, ...own }) => own)).toContain("must have required property 'q'");
  });

  it('has the outputs of the launch in the shapes of the problem', async () => {
    const view = (tensor: string, ...shape: readonly number[]) => ({ tensor, shape });
    expect(await refused((own) => ({ ...own, out: view('o', 1, 12, 16, 2) }))).toContain(
      "out has shape [1, 12, 16, 2], but the problem's is [1, 12, 2, 16]",
    );
    expect(await refused((own) => ({ ...own, out: view('v', 1, 12, 2, 16) }))).toContain(
      'out is a view of "v", which is no output of the launch',
    );
    expect(await refused(({ out: _, final_state: __, ...own }) => own)).toContain(
      'names no output; give out or final_state',
    );
    expect(await refused((own) => ({ ...own, cu_seqlens: view('g', 3) }))).toContain(
      'cu_seqlens has the type F32; give it I32 or I64',
    );
  });
});
