import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  auditFiles,
  blobFiles,
  threadPool,
  threadWork,
  webCodecs,
  type AuditWords,
  type StartThreads,
} from '../../src/browser/index.js';
import { unpackRecurrence } from '../fixtures/recurrent-captures.js';
import { unpack } from '../../fixtures/gradients/unpack.mjs';
import { openTensorFile } from '../../src/io/index.js';
import { writeNpz } from '../io/write-npz.js';
import type { Codecs } from '../../src/io/tensors/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { refusal, runInProcess } from '../cli/run-in-process.js';
import { npyBytes, npyDict } from '../io/npy-bytes.js';
import { temporaryFolder } from '../io/temporary-folder.js';
import { zipBytes } from '../io/zip-bytes.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = temporaryFolder();
const fixture = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';

const createSha256: Codecs['createSha256'] = () => {
  const hash = createHash('sha256');
  return { update: (bytes) => hash.update(bytes), digest: () => hash.digest('hex') };
};
const codecs = webCodecs(createSha256);

/** Stands for a browser's workers: each is given a copy of the data, and answers one request at a time. */
const startThreads: StartThreads = (threads, work, data) => {
  const workers = Array.from({ length: threads }, () =>
    threadWork(structuredClone(data), blobFiles(new Map(), codecs)),
  );
  let next = 0;
  return threadPool(
    threads,
    (request) => {
      const answer = workers[next++ % threads][work] as (request: unknown) => Promise<never>;
      return answer(structuredClone(request));
    },
    async () => undefined,
  );
};

function audit(content: Uint8Array, words: Partial<AuditWords>, threads = 1) {
  const files = blobFiles(new Map([['dump', new Blob([new Uint8Array(content)])]]), codecs);
  const request = { path: 'dump', files, words, threads, version: '0' };
  return auditFiles(request, () => undefined, startThreads);
}

/** A report without what differs between two runs and two names of one file. */
function comparable(report: object, path = 'dump'): unknown {
  const text = JSON.stringify({ ...report, created: null, seconds: null, tool: null });
  return JSON.parse(text.replaceAll(path, 'dump'));
}

/** The report of the command line on a file. */
async function commandReport(path: string, words: Partial<AuditWords>): Promise<unknown> {
  const flags = Object.entries(words).flatMap(([name, text]) => {
    if (name === 'causal') return ['--causal'];
    return [`--${name.replace('Partial', '-partial')}`, text];
  });
  const { stdout } = await runInProcess('audit', path, '--threads', '1', ...flags, '--json', '-');
  return comparable(JSON.parse(stdout) as object, path);
}

describe('a file of linear attention', () => {
  it('is refused before anything is computed', async () => {
    const content = new Uint8Array(unpackRecurrence('simple-gla-packed.safetensors'));
    const files = blobFiles(new Map([['dump', new Blob([content])]]), codecs);
    const request = { path: 'dump', files, words: {}, threads: 1, version: '0' };
    const begun: string[] = [];
    const refused = auditFiles(request, (stage) => begun.push(stage), startThreads);
    await expect(refused).rejects.toThrow(/^dump: is linear attention, which pages do not judge/);
    expect(begun).toEqual([]);
  });
});

describe('auditFiles', () => {
  const content = readFileSync(fixture);

  inTurn.each([
    [{ output: ':torch_flash.out', lse: ':torch_flash.lse' }, 1],
    [{ output: ':torch_flash.out', lse: ':torch_flash.lse' }, 3],
    [{ output: ':torch_flash.out', scale: '0.13', causal: 'yes' }, 1],
  ] as const)('gives the report of the command line: %j on %i threads', async (words, threads) => {
    const { report, page } = await audit(content, words, threads);
    await validateReport(report);
    expect(comparable(report)).toEqual(await commandReport(fixture, words));
    expect(page).toContain(report.verdict.sentence.slice(0, 40));
    expect(page).toContain('id="elements"');
  });

  const captured = unpack(readFileSync('fixtures/gradients/plain-fp32.safetensors.br'));
  const split = readFileSync('fixtures/features/triton-splits.safetensors');
  const [math, paged] = ['torch_math', 'triton_paged'];
  inTurn.each<['gradients' | 'splits', Uint8Array, Partial<AuditWords>, number]>([
    ['gradients', captured, { dq: `:${math}.dq`, dv: `:${math}.dv` }, 1],
    ['gradients', captured, { output: `:${math}.out`, dout: ':dout', dk: `:${math}.dk` }, 2],
    ['splits', split, { output: `:${paged}.out`, outPartial: `:${paged}.out_partial` }, 1],
  ])('judges %s as the command line does', async (part, bytes, words, threads) => {
    const path = folder.write(`${part}.safetensors`, bytes);
    const { report, page } = await audit(bytes, words, threads);
    await validateReport(report);
    expect(report[part]).toBeTruthy();
    expect(comparable(report)).toEqual(await commandReport(path, words));
    expect(page).toContain(`id="${part}"`);
  });

  it('reads a deflated npz, and an output of another file', async () => {
    const path = folder.at('dump.npz');
    const file = await openTensorFile(fixture);
    const read = async (name: string) => file.read(name);
    await writeNpz(path, { q: await read('q'), k: await read('k'), v: await read('v') });
    const files = blobFiles(
      new Map([
        ['dump.npz', new Blob([readFileSync(path)])],
        ['out.safetensors', new Blob([content])],
      ]),
      codecs,
    );
    await file.close();
    const words = {
      output: 'out.safetensors:torch_flash.out',
      format: 'q=bf16 k=bf16, v=bf16',
    };
    const request = { path: 'dump.npz', files, words, threads: 1, version: '0' };
    const { report } = await auditFiles(request, () => undefined, startThreads);
    const whole = (await audit(content, { output: ':torch_flash.out' })).report;
    expect(report.verdict).toEqual(whole.verdict);
    expect(report.outputs).toEqual(whole.outputs);
  });
});

describe('a file that cannot be judged gives the line of the command line', () => {
  const numbers = new Uint8Array(new Float32Array(24).buffer);
  const plain = npyBytes(npyDict("'<f4'", '(1, 2, 12)'), numbers);
  const member = (name: string) => ({ name: `${name}.npy`, content: plain, deflate: true });
  const sound = zipBytes(['q', 'k', 'v', 'out'].map(member));
  it.each<[string, Uint8Array, Partial<AuditWords>]>([
    ['nothing', new Uint8Array(0), {}],
    ['no tensors', new TextEncoder().encode('hello, world'), {}],
    ['a header that is too long', new Uint8Array(9).fill(255), {}],
    ['an archive that is cut short', sound.slice(0, -30), {}],
    ['no output', zipBytes(['q', 'k', 'v'].map(member)), {}],
    ['no such output', sound, { output: ':o' }],
    ['no scale', sound, { scale: 'big' }],
    [
      'a wrong checksum',
      zipBytes([{ ...member('q'), crc: 1 }, ...['k', 'v', 'out'].map(member)]),
      {},
    ],
  ])('%s', async (name, content, words) => {
    const path = folder.write(name.replaceAll(' ', '-'), content);
    const flags = Object.entries(words).flatMap(([flag, text]) => [`--${flag}`, text]);
    const line = await refusal('audit', path, ...flags);
    const error: unknown = await audit(content, words).catch((thrown: unknown) => thrown);
    const { message } = error as Error;
    expect(message).not.toContain('\n');
    // What was typed into a field was no option.
    expect(message.replaceAll('dump:', `${path}:`)).toBe(line.replace('--scale is', 'scale is'));
  });
});

describe('webCodecs', () => {
  it('has the CRC-32 of zlib, of bytes in any pieces', () => {
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * i * 7) & 255);
    for (const cut of [0, 1, 500, 1000])
      expect(codecs.crc32(bytes.subarray(cut), codecs.crc32(bytes.subarray(0, cut), 0))).toBe(
        crc32(bytes),
      );
  });
});
