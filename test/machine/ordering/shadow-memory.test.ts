import { describe, expect, it } from 'vitest';
import {
  Stamp,
  createChains,
  createClock,
  createShadowMemory,
  joinClock,
  tickClock,
  type AccessClocks,
  type Proxy,
  type Region,
} from '../../../src/machine/ordering/index.js';

/** A memory of so many words and agents that access it. */
function createScene(words = 64) {
  const memory = createShadowMemory(words);
  const chains = createChains();
  const agent = (who: string, proxy: Proxy = 'generic') => {
    const chain = chains.createAgent();
    const clocks: AccessClocks = { clock: createClock(), asyncView: createClock() };
    tickClock(clocks.clock, chain);
    const does = (kind: 'read' | 'write', region: Region) => {
      const time = clocks.clock.times[chain];
      const stamp = new Stamp({ chain, time, proxy, kind, site: kind, who, step: 0 });
      return { stamp, conflicts: memory[kind](region, stamp, clocks) };
    };
    return {
      ...clocks,
      read: (region: Region) => does('read', region),
      write: (region: Region) => does('write', region),
      end: (region: Region) => {
        const time = clocks.clock.times[chain];
        const stamp = new Stamp({
          chain,
          time,
          proxy,
          kind: 'write',
          site: 'end',
          who,
          step: 0,
        });
        return memory.end(region, stamp, clocks);
      },
      fence: () => {
        joinClock(clocks.asyncView, clocks.clock);
        tickClock(clocks.clock, chain);
      },
      /** Lets another agent come after everything up to here. */
      signal: (other: AccessClocks) => {
        joinClock(other.clock, clocks.clock);
        joinClock(other.asyncView, clocks.asyncView);
        tickClock(clocks.clock, chain);
      },
    };
  };
  return { memory, agent };
}

const word: Region = { start: 5, count: 1 };

describe('litmus tests', () => {
  it('message passing: a read needs a signal after the write', () => {
    for (const isSignalled of [true, false]) {
      const { agent } = createScene();
      const [writer, reader] = [agent('writer'), agent('reader')];
      const { stamp } = writer.write(word);
      if (isSignalled) writer.signal(reader);
      const { conflicts } = reader.read(word);
      expect(conflicts.map(({ kind, earlier, missing }) => ({ kind, earlier, missing }))).toEqual(
        isSignalled ? [] : [{ kind: 'write-read', earlier: stamp, missing: 'order' }],
      );
    }
  });

  it('message passing: a signal before the write says nothing of it', () => {
    const { agent } = createScene();
    const [writer, reader] = [agent('writer'), agent('reader')];
    writer.signal(reader);
    writer.write(word);
    expect(reader.read(word).conflicts).toMatchObject([{ kind: 'write-read', missing: 'order' }]);
  });

  it('a full buffer: the next write needs a signal from every reader', () => {
    for (const signals of [0, 1, 2]) {
      const { agent } = createScene();
      const [writer, first, second] = [agent('writer'), agent('first'), agent('second')];
      writer.write(word);
      writer.signal(first);
      writer.signal(second);
      const stamps = [first.read(word).stamp, second.read(word).stamp];
      [first, second].slice(0, signals).forEach((reader) => reader.signal(writer));
      expect(writer.write(word).conflicts.map(({ kind, earlier }) => [kind, earlier])).toEqual(
        stamps.slice(signals).map((stamp) => ['read-write', stamp]),
      );
    }
  });

  it('transitivity: a signal by way of a third agent will do', () => {
    const { agent } = createScene();
    const [writer, between, reader] = [agent('writer'), agent('between'), agent('reader')];
    writer.write(word);
    writer.signal(between);
    between.signal(reader);
    expect(reader.read(word).conflicts).toEqual([]);
  });

  it('the async proxy needs a fence after generic accesses, between the access and the signal', () => {
    for (const order of ['none', 'fence before', 'fence after']) {
      const { agent } = createScene();
      const [writer, copy] = [agent('writer'), agent('copy', 'async')];
      if (order === 'fence before') writer.fence();
      writer.write(word);
      if (order === 'fence after') writer.fence();
      writer.signal(copy);
      expect(copy.read(word).conflicts.map(({ missing }) => missing)).toEqual(
        order === 'fence after' ? [] : ['proxy-fence'],
      );
    }
  });

  it('generic accesses need no fence after the async proxy', () => {
    const { agent } = createScene();
    const [copy, reader] = [agent('copy', 'async'), agent('reader')];
    copy.write(word);
    copy.signal(reader);
    expect(reader.read(word).conflicts).toEqual([]);
  });

  it('a later async read does not stand for a generic one that lacks its fence', () => {
    const { agent } = createScene();
    const [reader, copy] = [agent('reader'), agent('copy', 'async')];
    reader.write(word);
    const { stamp } = reader.read(word);
    reader.signal(copy);
    copy.read(word);
    expect(copy.write(word).conflicts).toMatchObject([
      { kind: 'write-write', missing: 'proxy-fence' },
      { kind: 'read-write', earlier: stamp, missing: 'proxy-fence' },
    ]);
  });
});

describe('the life of contents', () => {
  it('begins with a write: a read before has nothing to read', () => {
    const { agent } = createScene();
    const warp = agent('warp');
    warp.write({ start: 10, count: 4 });
    expect(warp.read({ start: 8, count: 8 }).conflicts).toMatchObject([
      { kind: 'uninitialised', earlier: null, missing: null, firstWord: 8, words: 4 },
    ]);
  });

  it('begins before the run where it is initialised, for everyone and free to be overwritten', () => {
    const { agent, memory } = createScene();
    memory.initialise({ start: 0, count: 2, stride: 8, rows: 2 });
    const warp = agent('warp');
    expect(warp.read({ start: 0, count: 2, stride: 8, rows: 2 }).conflicts).toEqual([]);
    expect(warp.write({ start: 8, count: 2 }).conflicts).toEqual([]);
    expect(warp.read({ start: 2, count: 1 }).conflicts).toMatchObject([{ kind: 'uninitialised' }]);
  });

  it('ends when it is forgotten, whoever was to read it', () => {
    const { agent, memory } = createScene();
    const [warp, other] = [agent('warp'), agent('other')];
    warp.write(word);
    memory.forget(word);
    expect(other.read(word).conflicts).toMatchObject([{ kind: 'uninitialised' }]);
    memory.forget(word);
    expect(warp.write(word).conflicts).toEqual([]);
  });

  it('ends unread without complaint, but not while it is written or read', () => {
    const { agent } = createScene();
    const [warp, other] = [agent('warp'), agent('other')];
    warp.write(word);
    expect(warp.end(word)).toEqual([]);
    warp.write(word);
    warp.signal(other);
    const { stamp } = other.read(word);
    expect(warp.end(word)).toMatchObject([{ kind: 'read-write', earlier: stamp }]);
    expect(warp.read(word).conflicts).toMatchObject([{ kind: 'uninitialised' }]);
    warp.write(word);
    expect(other.end(word)).toMatchObject([{ kind: 'write-write', missing: 'order' }]);
  });

  it('has to be read before the next write', () => {
    const { agent } = createScene();
    const warp = agent('warp');
    const { stamp } = warp.write({ start: 0, count: 8 });
    warp.read({ start: 0, count: 3 });
    const { conflicts } = warp.write({ start: 0, count: 8 });
    expect(conflicts).toMatchObject([
      { kind: 'overwritten-unread', earlier: stamp, firstWord: 3, words: 5 },
    ]);
  });
});

describe('regions', () => {
  it('are rectangles: granules of tensor memory by columns', () => {
    const { agent } = createScene(8 * 512);
    const [mma, load] = [agent('mma', 'async'), agent('load', 'async')];
    // 128 lanes × 64 columns from column 100; then lanes 32 to 63, columns 96 to 111.
    mma.write({ start: 100, count: 64, stride: 512, rows: 8 });
    const { conflicts } = load.read({ start: 2 * 512 + 96, count: 16, stride: 512, rows: 2 });
    expect(conflicts).toMatchObject([
      { kind: 'uninitialised', firstWord: 2 * 512 + 96, words: 8 },
      { kind: 'write-read', firstWord: 2 * 512 + 100, words: 24 },
    ]);
    expect(load.read({ start: 7 * 512 + 164, count: 1 }).conflicts).toMatchObject([
      { kind: 'uninitialised' },
    ]);
  });

  it('are empty without rows or words, and refused outside of the memory', () => {
    const { agent } = createScene(64);
    const warp = agent('warp');
    expect(warp.read({ start: 64, count: 0 }).conflicts).toEqual([]);
    expect(warp.read({ start: 3, count: 4, rows: 0 }).conflicts).toEqual([]);
    for (const region of [
      { start: 60, count: 5 },
      { start: -1, count: 2 },
      { start: 0, count: 8, stride: 20, rows: 4 },
      { start: 0.5, count: 1 },
    ])
      expect(() => warp.read(region)).toThrow(/are not in a memory of 64 words/);
  });

  it('of one access may overlap, also in several calls', () => {
    const { memory } = createScene();
    const clocks = { clock: createClock(), asyncView: createClock() };
    const stamp = new Stamp({
      chain: 0,
      time: 1,
      proxy: 'generic',
      kind: 'write',
      site: '',
      who: '',
      step: 0,
    });
    // The clock does not even have the access's own position.
    expect(memory.write({ start: 0, count: 4, stride: 2, rows: 3 }, stamp, clocks)).toEqual([]);
    expect(memory.write({ start: 3, count: 3 }, stamp, clocks)).toEqual([]);
  });
});

it('knows after a long run what happened at its begin', () => {
  const words = 1000;
  const { agent } = createScene(words);
  const [warp, reader, other] = [agent('warp'), agent('reader'), agent('other')];
  const { stamp: write } = warp.write({ start: 0, count: 1 });
  warp.signal(reader);
  const { stamp: read } = reader.read({ start: 0, count: 1 });
  // Every access makes a state; in the end all words but the first are in different ones of them.
  const last = new Map<number, Stamp>();
  for (let round = 0; round < 50_000; round++) {
    const start = 1 + (round % (words - 1));
    last.set(start, warp.write({ start, count: 1 }).stamp);
  }
  const { conflicts } = other.write({ start: 0, count: words });
  expect(conflicts.map(({ kind, earlier, firstWord }) => [kind, earlier, firstWord])).toEqual([
    ['write-write', write, 0],
    ['read-write', read, 0],
    ...Array.from({ length: words - 1 }, (_, at) => ['write-write', last.get(at + 1), at + 1]),
  ]);
});

it('takes up an access again after a long time', () => {
  const memory = createShadowMemory(4);
  const nothing: AccessClocks = { clock: createClock(), asyncView: createClock() };
  const record = (chain: number, kind: 'read' | 'write') =>
    new Stamp({ chain, time: 1, kind, proxy: 'async', site: '', who: '', step: 0 });
  const readOften = (from: number, to: number) => {
    for (let chain = from; chain < to; chain++) {
      memory.initialise({ start: 3, count: 1 });
      memory.read({ start: 3, count: 1 }, record(chain, 'read'), nothing);
    }
  };
  readOften(1, 100);
  const slow = record(0, 'write');
  memory.write({ start: 0, count: 1 }, slow, nothing);
  readOften(100, 20_000);
  memory.write({ start: 1, count: 1 }, slow, nothing);
  const reader = record(20_000, 'read');
  expect(memory.read({ start: 0, count: 3 }, reader, nothing)).toEqual([
    { kind: 'write-read', earlier: slow, later: reader, missing: 'order', firstWord: 0, words: 2 },
    { kind: 'uninitialised', earlier: null, later: reader, missing: null, firstWord: 2, words: 1 },
  ]);
});
