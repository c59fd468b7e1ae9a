import { describe, expect, it } from 'vitest';
import { createProgressLine, createStagedProgress } from '../../src/cli/terminal.js';

/** A stream that keeps what is written, and a clock that is turned by hand. */
function watched(isTTY: boolean) {
  const written: string[] = [];
  let now = 0;
  return {
    written,
    stream: { isTTY, write: (text: string) => written.push(text) } as never,
    clock: () => now,
    at: (milliseconds: number) => (now = milliseconds),
  };
}

const stages = [
  ['one', 1],
  ['two', 3],
] as const;

describe('progress of several stages', () => {
  it('without a terminal is a line every ten seconds, of all stages together', () => {
    const { written, stream, clock, at } = watched(false);
    const progress = createStagedProgress('work', stages, stream, clock);
    for (let second = 1; second <= 10; second++) {
      at(second * 1000);
      progress.update('one', second / 10);
    }
    for (let second = 11; second <= 40; second++) {
      at(second * 1000);
      progress.update('two', (second - 10) / 30);
    }
    progress.done();
    expect(written).toEqual([
      'work: 25 %, 30 s left\n',
      'work: 50 %, 20 s left\n',
      'work: 75 %, 10 s left\n',
      'work: 100 %, 0 s left\n',
    ]);
  });

  it('on a terminal is one bar that never falls', () => {
    const { written, stream, clock, at } = watched(true);
    const progress = createStagedProgress('work', stages, stream, clock);
    const updates = [
      ['one', 0.5],
      ['two', 0.2],
      ['two', 1],
      ['two', 0.1],
      ['unknown', 1],
    ] as const;
    updates.forEach(([stage, share], i) => {
      at(2000 * (i + 1));
      progress.update(stage, share);
    });
    progress.done();
    expect(written.at(-1)).toBe('\r\x1b[2K');
    const lines = written.slice(0, -1).map((text) => text.replace('\r\x1b[2K', ''));
    expect(lines[0]).toBe('work [###---------------------] 12 %, 14 s left');
    const shares = lines.map((line) => Number(/ (\d+) %/.exec(line)![1]));
    expect(shares).toEqual([12, 40, 100, 100, 100]);
    for (const line of lines) expect(line).toMatch(/^work \[#*-*\] \d+ %/);
  });

  it('is silent for the first second', () => {
    const { written, stream, clock, at } = watched(true);
    const line = createProgressLine(stream, clock);
    at(900);
    line.update('work', 0.5);
    line.done();
    expect(written).toEqual([]);
  });
});
