import { cachePartShape, type CachePart, type FactorRule } from '../../../../problem/index.js';
import { writtenValues, type FactorTerms, type Span } from '../../../../../oracles/index.js';
import { ruleWords } from '../factor-rules.js';
import type { Group, SupposedPart, Supposition } from '../supposition.js';
import { mapSpans, withParts, withValues, type WriteFault } from './write-fault.js';

function reciprocal([low, high]: Span): Span {
  return [(1 / high) * (1 - 2 ** -22), (1 / low) * (1 + 2 ** -22)];
}

function same<T>(x: T): T {
  return x;
}

/** Another group, by the number of heads, tokens, groups and parts that there are. */
interface Neighbour {
  readonly id: string;
  readonly of: string;
  readonly to: (group: Group, sizes: GroupSizes) => Group;
}

interface GroupSizes {
  readonly heads: number;
  readonly tokens: number;
  readonly groups: number;
  readonly parts: number;
}

const neighbours: readonly Neighbour[] = [
  ...([-1, 1] as const).flatMap((by): Neighbour[] => {
    const side = by < 0 ? 'before' : 'behind';
    return [
      {
        id: 'factor-of-other-head',
        of: `the head ${side}`,
        to: (one, { heads }) => ({ ...one, head: (one.head + by + heads) % heads }),
      },
      {
        id: 'factor-of-other-token',
        of: `the token ${side}`,
        to: (one, { tokens }) => ({ ...one, token: (one.token + by + tokens) % tokens }),
      },
      {
        id: 'factor-of-other-block',
        of: `the block of columns ${side}`,
        to: (one, { groups }) => ({ ...one, group: (one.group + by + groups) % groups }),
      },
    ];
  }),
  { id: 'factor-of-other-head', of: 'the first head', to: (one) => ({ ...one, head: 0 }) },
  { id: 'factor-of-other-token', of: 'the first token', to: (one) => ({ ...one, token: 0 }) },
  {
    id: 'factor-of-other-block',
    of: 'the first block of columns',
    to: (one) => ({ ...one, group: 0 }),
  },
  {
    id: 'factor-of-other-tensor',
    of: 'the other of K and V',
    to: (one, { parts }) => ({ ...one, part: parts === 2 ? 1 - one.part : one.part }),
  },
];

/** Writers that take the factor of another group: to store it, to divide by it, or both. */
function* neighbourFaults(right: Supposition): Generator<WriteFault> {
  for (const { id, of, to } of neighbours) {
    const other = (one: Group): Group => {
      const { part, scaling } = right.parts[one.part];
      const { heads, columns } = cachePartShape(part);
      const groups = Math.ceil(columns / (scaling?.columns ?? columns));
      return to(one, { heads, groups, tokens: right.slots.length, parts: right.parts.length });
    };
    yield {
      id,
      sentence: `numbers are divided by the factor of ${of}`,
      supposed: { ...right, divided: other },
    };
    yield {
      id,
      sentence: `the factor is that of ${of}, stored and divided by`,
      supposed: { ...right, measured: other },
    };
    yield {
      id,
      sentence: `the factor that is stored is that of ${of}, and numbers are divided by the right one`,
      supposed: { ...right, measured: other, divided: same },
    };
  }
}

/** A rule of the same kind of factors beside the right one. */
interface OtherTerms {
  readonly id: string;
  readonly change: Partial<FactorTerms>;
}

const powerRules: readonly FactorRule[] = ['power-up', 'mx-floor', 'mx-ceil', 'mx-even'];

function otherTerms({ rule, floor }: FactorTerms): OtherTerms[] {
  const rules = powerRules.map((other): OtherTerms => {
    const isRounding = powerRules.includes(rule);
    return { id: isRounding ? 'power-rounding' : 'factor-rule', change: { rule: other } };
  });
  const maxima = [448, 240, 57344, 127, 128, 6, 1].map((maximum): OtherTerms => ({
    id: 'factor-maximum',
    change: { maximum },
  }));
  const floors = [
    null,
    ...[1e-12, 1e-10, 1e-8, 1e-5, 1e-4].map((least) => ({ of: 'amax', least }) as const),
    ...[1e-12, 1e-10, 2 ** -126].map((least) => ({ of: 'factor', least }) as const),
  ].map((one): OtherTerms => ({ id: 'factor-floor', change: { floor: one } }));
  return [
    ...rules,
    ...maxima,
    ...floors.filter(({ change }) => JSON.stringify(change.floor) !== JSON.stringify(floor)),
    { id: 'factor-rule', change: { rule: 'amax' } },
    { id: 'global-factor-missing', change: { global: 1 } },
  ];
}

/** Writers whose factors follow another rule. */
function* ruleFaults(right: Supposition): Generator<WriteFault> {
  const first = right.parts.find(({ terms }) => terms !== null && terms.rule !== 'given')?.terms;
  if (first === undefined || first === null) return;
  for (const { id, change } of otherTerms(first)) {
    const isSame = (Object.keys(change) as (keyof FactorTerms)[]).every(
      (key) => change[key] === first[key],
    );
    if (isSame) continue;
    const sentence = `factors are ${ruleWords({ ...first, ...change })}, where they have to be ${ruleWords(first)}`;
    const supposed = withParts(right, (of) =>
      of.terms === null || of.terms.rule === 'given'
        ? of
        : { ...of, terms: { ...of.terms, ...change } },
    );
    yield { id, sentence, supposed };
  }
}

/** A right writer whose factors are made of other numbers than are stored. */
function sizedBy(right: Supposition, change: (of: SupposedPart) => SupposedPart): Supposition {
  return { ...right, sized: right.parts.map(change) };
}

function hasRotary({ prologue }: CachePart): boolean {
  return prologue !== null && prologue.rotary !== null;
}

function hasNorm({ prologue }: CachePart): boolean {
  return prologue !== null && prologue.norm !== null;
}

function withoutPrologue(of: SupposedPart, part: CachePart): SupposedPart {
  return withValues(of, writtenValues(part));
}

/** Writers that take the largest size of other numbers. */
function* sizeFaults(right: Supposition): Generator<WriteFault> {
  const has = (test: (of: SupposedPart) => boolean) => right.parts.some(test);
  if (has(({ part }) => hasRotary(part)))
    yield {
      id: 'amax-before-rope',
      sentence: 'factors are made of the numbers before their rotation',
      supposed: sizedBy(right, (of) => {
        const { prologue } = of.part;
        if (prologue === null) return of;
        return withoutPrologue(of, { ...of.part, prologue: { ...prologue, rotary: null } });
      }),
    };
  if (has(({ part }) => hasNorm(part)))
    yield {
      id: 'amax-before-norm',
      sentence: 'factors are made of the numbers before their norm',
      supposed: sizedBy(right, (of) => withoutPrologue(of, { ...of.part, prologue: null })),
    };
  yield {
    id: 'amax-without-sign',
    sentence: 'factors are made of the largest number, not of the largest size',
    supposed: sizedBy(right, (of) =>
      withValues(
        of,
        mapSpans(of.values, (x) => Math.max(x, 0)),
      ),
    ),
  };
  const scaled = (of: SupposedPart, by: number): SupposedPart => {
    if (of.scaling === null) return of;
    const columns = Math.max(1, Math.ceil(of.scaling.columns * by));
    return { ...of, scaling: { ...of.scaling, columns } };
  };
  for (const [half, which] of (['first', 'second'] as const).entries())
    yield {
      id: 'amax-half-block',
      sentence: `factors are made of the ${which} half of their block alone`,
      supposed: {
        ...sizedBy(right, (of) => scaled(of, 0.5)),
        measured: (one) => ({ ...one, group: 2 * one.group + half }),
      },
    };
  yield {
    id: 'amax-double-block',
    sentence: 'factors are made of blocks of twice as many columns',
    supposed: {
      ...sizedBy(right, (of) => scaled(of, 2)),
      measured: (one) => ({ ...one, group: Math.floor(one.group / 2) }),
    },
  };
}

/** Writers whose factors are wrong, or are used wrongly. */
export function* factorFaults(right: Supposition): Generator<WriteFault> {
  if (right.parts.every(({ factors }) => factors === null)) return;
  yield {
    id: 'factor-reciprocal',
    sentence: 'the reciprocal of the factor is stored',
    supposed: { ...right, storedFactor: reciprocal, divided: same },
  };
  yield {
    id: 'factor-multiplied',
    sentence: 'numbers are multiplied by the factor, not divided',
    supposed: { ...right, divisor: reciprocal },
  };
  yield {
    id: 'factor-not-used',
    sentence: 'numbers are stored without division by the factor',
    supposed: { ...right, divisor: () => [1, 1] },
  };
  yield* ruleFaults(right);
  yield* sizeFaults(right);
  yield* neighbourFaults(right);
  if (right.parts.some(({ scaling }) => scaling !== null && scaling.global !== 1)) {
    const global = right.parts.find(({ scaling }) => scaling !== null)?.scaling?.global ?? 1;
    yield {
      id: 'global-factor-missing',
      sentence: 'numbers are divided by the factor of their block alone, without the global one',
      supposed: { ...right, divisor: ([low, high]) => [low / global, high / global] },
    };
  }
}
