import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLineSplitter, parseKernelAnswer } from '../../src/io/live/kernel-answer.js';
import { cleanUpWhenInterrupted, startKernelProcess } from '../../src/io/live/kernel-process.js';

const request = {
  problem: '/nowhere/p.safetensors',
  output: '/nowhere/o.safetensors',
  scale: 1,
  causal: false,
  window: null,
  softcap: null,
};

/** The lines that a splitter makes of pieces. */
function linesOf(pieces: readonly Uint8Array[]): string[] {
  const lines: string[] = [];
  const split = createLineSplitter((line) => lines.push(line));
  for (const piece of pieces) split(piece);
  return lines;
}

describe('lines of a kernel', () => {
  it('are the same however its output arrives', () => {
    const line = fc.string({ unit: fc.constantFrom('a', '{', ' ', '\r', '\u2028', 'é', '😀') });
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(40)), (texts, cuts) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''));
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        const expected = texts.map((text) => text.trim()).filter((text) => text !== '');
        expect(linesOf(pieces)).toEqual(expected);
      }),
    );
  });

  it('that do not end are handed on after 64 KiB, once, and cost no more', () => {
    const piece = Buffer.alloc(1000, 'x');
    const lines = linesOf([...Array<Buffer>(500).fill(piece), Buffer.from('\nnext\n')]);
    expect(lines.map((line) => line.length)).toEqual([65_536, 4]);
  });
});

describe('an answer of a kernel', () => {
  const deep = 20_000;
  const odd: readonly (readonly [line: string, reason: RegExp])[] = [
    ['{"id":{"toString":1},"ok":true}', /answered request "\{.*\}" instead of 1/],
    ['{"id":1,"ok":false,"error":{"toString":null,"valueOf":1}}', /^reported an error/],
    [`{"id":${'['.repeat(deep)}${']'.repeat(deep)},"ok":true}`, /not JSON|instead of 1/],
    ['{"id":1,"ok":false,"error":"\u009b31m\u202e\u2028"}', /\\u009b31m\\u202e\\u2028/],
    ['{"id":1,"id":2,"ok":true}', /answered request "2" instead of 1/],
    ['{"__proto__":{"id":1,"ok":true}}', /without "id" and "ok"/],
    ['null', /without "id" and "ok"/],
  ];
  it.each(odd)('that is odd fails in one line: %s', (line, reason) => {
    const answer = parseKernelAnswer(line, 1);
    expect(answer.ok).toBe(false);
    const text = (answer as { reason: string }).reason;
    expect(text).toMatch(reason);
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
    expect(text.length).toBeLessThan(1000);
  });
});

describe('a kernel process', () => {
  it('may answer late: a timeout of a year is no timeout of a millisecond', async () => {
    const live = startKernelProcess('sleep 0.2; echo \'{"id":1,"ok":true}\'', 3.2e7);
    expect(await live.request(request)).toEqual({ ok: true });
    await live.close();
  });

  it('that never ends its line, or floods its stdout, is refused and stopped', async () => {
    for (const command of ["yes | tr -d '\\n'", 'yes']) {
      const live = startKernelProcess(command, 20);
      const start = process.memoryUsage.rss();
      expect(await live.request(request)).toMatchObject({ ok: false, cause: 'protocol' });
      live.stop();
      await live.close();
      expect(process.memoryUsage.rss() - start).toBeLessThan(256 * 2 ** 20);
    }
  });

  it('leaves no listener behind', async () => {
    const count = () =>
      ['exit', 'SIGINT', 'SIGTERM', 'SIGHUP'].map((event) => process.listenerCount(event));
    const before = count();
    const withdraw = cleanUpWhenInterrupted(() => undefined);
    expect(count()).toEqual(before.map((listeners) => listeners + 1));
    withdraw();
    expect(count()).toEqual(before);
  });
});
