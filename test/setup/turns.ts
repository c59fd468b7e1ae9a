import { it, type TestAPI } from 'vitest';
import { fromEnvironment, scaled, testSeed } from './effort.js';

const isLong = fromEnvironment('LONG', 0) === 1;
/** A run makes one of so many long tests: all of them where it is for these, unless TURNS says otherwise. */
const every = fromEnvironment('TURNS', isLong ? 1 : 40);
if (every === 0)
  throw new Error('TURNS is 0, with which no long test would be made; give 1 or more');
/** The turn that it is; runs with as many in a row as `every` make all. */
const turn = fromEnvironment('TURN', testSeed);

/** `it` for tests that take turns. */
interface InTurn {
  (title: string, test: () => unknown, timeout?: number): void;
  (title: string, options: { readonly timeout: number }, test: () => unknown): void;
  readonly each: TestAPI['each'];
  readonly for: TestAPI['for'];
}

/** What `it` takes, whatever its overloads. */
type AnyTest = (...test: readonly unknown[]) => void;
type AnyTests = AnyTest & Readonly<Record<'each' | 'for', (rows: readonly unknown[]) => AnyTest>>;

/** A whole number from text, the same in every run (FNV-1a). */
function hash(text: string): number {
  return Array.from(text).reduce(
    (mixed, letter) => Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) >>> 0,
    0x811c9dc5,
  );
}

/**
 * `it` for the long tests of the file `url`, of which a default run makes one in forty and skips the
 * others. TEST_SEED says which, so that forty seeds in a row make all of them. `npm run test:long`, which
 * sets LONG=1 and runs the files that call this, makes all at once, or with TURNS=6 every sixth from that of TURN on; so
 * does a run that names files, and TEST_EFFORT=40. Of tests that take minutes a default run makes none. A test that takes
 * turns builds on no other.
 */
export function turns(url: string, { areMinutes = false } = {}): InTurn {
  let place = hash(url.split('/test/').at(-1) ?? url) + turn;
  const isMade = !areMinutes || isLong;
  const next = () => it.runIf(place++ % every < scaled(1) && isMade) as unknown as AnyTests;
  const inTurn: AnyTest = (...test) => next()(...test);
  const ofRows =
    (name: 'each' | 'for') =>
    (rows: readonly unknown[]): AnyTest =>
    (...test) => {
      for (const row of rows) next()[name]([row])(...test);
    };
  return Object.assign(inTurn, { each: ofRows('each'), for: ofRows('for') }) as InTurn;
}
