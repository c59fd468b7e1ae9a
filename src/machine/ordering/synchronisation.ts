import type { MemoryScope } from '../isa/index.js';
import type { AccessClocks } from './accesses.js';
import { copyClock, createClock } from './clock.js';
import { joinClocks } from './operation-order.js';
import type {
  MemoryArea,
  OrderedCta,
  OrderedWarp,
  StrongAccess,
  WarpOrder,
} from './order-tracker.js';
import { bytesOfWord } from './region.js';

/** A release at a word: by a warp of a CTA (by its number), for the threads of a scope. */
interface Released {
  readonly cta: number;
  readonly scope: MemoryScope;
  readonly clocks: AccessClocks;
}

/** Scopes from the narrowest on. */
const scopes: readonly MemoryScope[] = ['cta', 'cluster', 'gpu', 'sys'];

/** Whether a release for one scope reaches an acquire with another, from some CTA. */
function reaches({ cta, scope }: Released, reader: number, readerScope: MemoryScope): boolean {
  return cta === reader || (scope !== 'cta' && readerScope !== 'cta');
}

function copyClocks({ clock, asyncView }: AccessClocks): AccessClocks {
  return { clock: copyClock(clock), asyncView: copyClock(asyncView) };
}

/** Clocks before which nothing has happened. */
export function createClocks(): AccessClocks {
  return { clock: createClock(), asyncView: createClock() };
}

/**
 * The order that strong accesses give, word by word. A write that releases (by itself, or since a fence came
 * before it) publishes the events that its warp knows to any warp that reads its value and acquires it (by the
 * read itself, or by a fence after it); an atomic operation passes on earlier releases, whatever it does itself.
 * Source: PTX ISA, "Release and Acquire Patterns", "Observation", "Causality Order".
 */
export interface Synchronisation {
  /** A strong read; returns whether it may tell the warp more. */
  readonly read: (order: WarpOrder, cta: OrderedCta, word: number, strong: StrongAccess) => boolean;
  /** A strong write; returns whether it made something known. */
  readonly write: (
    order: WarpOrder,
    cta: OrderedCta,
    word: number,
    strong: StrongAccess,
  ) => boolean;
  /** A weak write to some words: nobody can acquire by its value. */
  readonly forget: (first: number, count: number) => void;
}

/** The state before any release. */
export function createSynchronisation(): Synchronisation {
  const releasedAt = new Map<number, readonly Released[]>();

  /** The releases of a write: all that the warp knows, or the events before its fences. */
  function releases(
    order: WarpOrder,
    cta: number,
    { order: kind, scope }: StrongAccess,
  ): Released[] {
    if (kind === 'release' || kind === 'acq_rel')
      return [{ cta, scope, clocks: copyClocks(order) }];
    const found: Released[] = [];
    for (const fenceScope of scopes.slice(0, scopes.indexOf(scope) + 1)) {
      const clocks = order.fenced.get(fenceScope);
      if (clocks !== undefined) found.push({ cta, scope: fenceScope, clocks });
    }
    return found;
  }

  return {
    read: (order, { number }, word, { order: kind, scope }) => {
      const released = releasedAt.get(word);
      if (released === undefined) return false;
      const acquires = kind === 'acquire' || kind === 'acq_rel';
      for (const one of released)
        if (reaches(one, number, scope)) joinClocks(acquires ? order : order.observed, one.clocks);
      return acquires;
    },
    write: (order, { number }, word, strong) => {
      const added = releases(order, number, strong);
      const before = strong.isAtomic ? (releasedAt.get(word) ?? []) : [];
      if (added.length + before.length === 0) releasedAt.delete(word);
      else releasedAt.set(word, merge([...before, ...added]));
      return added.length > 0;
    },
    forget: (first, count) => {
      if (releasedAt.size === 0) return;
      if (count < releasedAt.size) for (let i = 0; i < count; i++) releasedAt.delete(first + i);
      else
        for (const word of releasedAt.keys())
          if (word >= first && word < first + count) releasedAt.delete(word);
    },
  };
}

/** One entry for each CTA and scope. */
function merge(released: readonly Released[]): readonly Released[] {
  const merged = new Map<string, Released>();
  for (const one of released) {
    const key = `${one.cta} ${one.scope}`;
    const earlier = merged.get(key);
    if (earlier === undefined) merged.set(key, { ...one, clocks: copyClocks(one.clocks) });
    else joinClocks(earlier.clocks, one.clocks);
  }
  return [...merged.values()];
}

/** Adds the events before the fences of one agent to those of another. */
export function joinFences(into: WarpOrder, from: WarpOrder): void {
  for (const [scope, clocks] of from.fenced) {
    const joined = copyClocks(clocks);
    const own = into.fenced.get(scope);
    if (own !== undefined) joinClocks(joined, own);
    into.fenced.set(scope, joined);
  }
}

/**
 * A fence: it makes known the releases that strong reads have seen, and strong writes release the
 * clock from now on.
 */
export function fenceOrder(order: WarpOrder, scope: MemoryScope): void {
  joinClocks(order, order.observed);
  const clocks = copyClocks(order);
  for (const narrower of scopes.slice(0, scopes.indexOf(scope) + 1))
    order.fenced.set(narrower, clocks);
}

/**
 * Applies an access to shared or global memory to the releases; returns whether it published events
 * or told its warp of some.
 */
export function synchronise(
  released: Synchronisation,
  { cta, order }: OrderedWarp,
  kind: 'read' | 'write',
  { unit, start, count, stride = 0, rows = 1, strong }: MemoryArea,
): boolean {
  const perWord = unit === 'byte' ? bytesOfWord : 1;
  let isChanged = false;
  for (let row = 0; row < rows; row++) {
    const first = Math.floor((start + row * stride) / perWord);
    const words = Math.ceil((start + row * stride + count) / perWord) - first;
    if (strong === undefined) released.forget(first, words);
    else
      for (let i = 0; i < words; i++)
        isChanged = released[kind](order!, cta, first + i, strong) || isChanged;
  }
  return isChanged;
}
