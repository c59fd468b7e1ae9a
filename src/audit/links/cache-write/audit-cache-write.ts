import type { CacheWrite } from '../../../problem/index.js';
import { cachePartShape } from '../../../problem/index.js';
import { formatNumber, listed } from '../../../words/index.js';
import { foundCause, unexplainedCause, type FoundCause } from '../../conduct/causes.js';
import { reachLinkVerdict, type LinkAudit, type LinkCheck } from '../link-audit.js';
import { explainWrite, rowWords } from './explain-write.js';
import { groupWords, isSettled, ruleWords, type PartRules } from './factor-rules.js';
import { mappingFault } from './faults/slot-faults.js';
import type { Misfit } from './judge-row.js';
import { judgeWrite, type JudgedWrite, type WrongRow } from './judge-write.js';

/** Parts of a check that are the same in most. */
const exactCheck = { worstShare: null, isWorstCase: true } as const;

function spanWords([low, high]: readonly [number, number]): string {
  if (Number.isNaN(low)) return 'NaN';
  return low === high ? formatNumber(low) : `${formatNumber(low)} to ${formatNumber(high)}`;
}

/** Evidence for a wrong number or factor: "k, token 3, head 1, column 5: 12 is stored, and 13 is right". */
function misfitWords(
  { write }: JudgedWrite,
  { part, token, head, slot }: WrongRow,
  { index, found, expected }: Misfit,
  what: string,
): string {
  const { name } = write.parts[part];
  const place = [name, `token ${token}`, `head ${head}`, `${what} ${index}`, `slot ${slot}`];
  return `${place.join(', ')}: ${formatNumber(found)} is stored, and ${spanWords(expected)} is right`;
}

function slotCheck({ write, wrongSlots, sharedSlots }: JudgedWrite): LinkCheck {
  const [first] = wrongSlots;
  const statement =
    first !== undefined
      ? `slot_mapping gives token ${first.token} the slot ${first.slot}, and the page table ${first.expected}`
      : sharedSlots.length > 0
        ? `slot ${sharedSlots[0]} is given to more than one token, so what it holds depends on their order`
        : null;
  const wrong = wrongSlots.length + sharedSlots.length;
  return {
    ...exactCheck,
    name: 'slots',
    label: 'Slots',
    parts: 'slots',
    claim: 'slots are those of the page table',
    checked: write.tokens,
    wrong,
    free: 0,
    statement,
    unjudged: write.table === null && wrong === 0 ? 'there is no page table' : null,
    isRequired: false,
  };
}

/** Whether every buffer is known to be as it was before the write. */
function isUntouched({ before, after }: CacheWrite): boolean {
  if (before === null) return false;
  return [...after].every(([name, bytes]) => {
    const old = before.get(name);
    return old !== undefined && bytes.every((byte, i) => byte === old[i]);
  });
}

function numberCheck(judged: JudgedWrite): LinkCheck {
  const { counts, wrongRows } = judged;
  const first = wrongRows.find((row) => row.judged.firstWrong !== null);
  const misfit = first?.judged.firstWrong ?? null;
  const where = rowWords(judged, wrongRows);
  return {
    ...exactCheck,
    name: 'numbers',
    label: 'Numbers',
    parts: 'stored numbers',
    claim: 'every stored number is a correct rounding',
    checked: counts.judged,
    wrong: counts.wrong,
    free: counts.either,
    statement:
      first === undefined || misfit === null
        ? null
        : `${counts.wrong} of ${counts.judged} stored numbers are no correct roundings${where === '' ? '' : ` (${where})`}; ${misfitWords(judged, first, misfit, 'column')}`,
    unjudged: isUntouched(judged.write)
      ? 'no byte of the cache changed, so that a kernel that writes nothing would pass'
      : null,
    isRequired: true,
  };
}

/** The rule of each part's factors, in words; null where it follows none. */
function ruleClauses({ write, rules }: JudgedWrite): string[] {
  return write.parts.flatMap(({ scaling }, part) => {
    const own = rules[part];
    if (scaling === null || own === null || !isSettled(own)) return [];
    const { name } = write.parts[part];
    return [
      `factors of ${name} are ${ruleWords(own.fitted[0].terms)} ${groupWords(write.parts[part], scaling)}`,
    ];
  });
}

/** The reason why nothing is said of factors; null where something is. */
function unjudgedFactors({ write, rules }: JudgedWrite): string | null {
  const unruled = [...rules.entries()].filter(([, one]) => one !== null && !isSettled(one));
  if (unruled.length > 0) {
    const clauses = unruled.map(([part, one]) => {
      const { fitted, of } = one as PartRules;
      return `factors of ${write.parts[part].name} follow no rule that is known (the nearest, ${ruleWords(fitted[0].terms)}, has ${fitted[0].fits} of ${of}); declare scale_rule`;
    });
    return clauses.join('; ');
  }
  const isGiven = rules.every((one) => one === null || one.fitted[0].terms.rule === 'given');
  return isGiven ? 'they are given, not made of what is stored' : null;
}

function factorCheck(judged: JudgedWrite, isExplained: boolean): LinkCheck[] {
  const { counts, wrongRows, rules } = judged;
  if (rules.every((one) => one === null)) return [];
  const reason = unjudgedFactors(judged);
  const isUnruled = rules.some((one) => one !== null && !isSettled(one));
  // Without a rule that is known, factors are wrong only if a cause says so.
  const wrong = isUnruled && !isExplained ? 0 : counts.wrongFactors;
  const first = wrongRows.find((row) => row.judged.firstWrongFactor !== null);
  const misfit = first?.judged.firstWrongFactor ?? null;
  return [
    {
      ...exactCheck,
      name: 'factors',
      label: 'Factors',
      parts: 'factors',
      claim: listed(ruleClauses(judged)) || 'factors follow their rule',
      checked: counts.judgedFactors,
      wrong,
      free: 0,
      statement:
        first === undefined || misfit === null || wrong === 0
          ? null
          : `${wrong} of ${counts.judgedFactors} factors are wrong; ${misfitWords(judged, first, misfit, 'block')}`,
      unjudged: wrong > 0 ? null : reason,
      isRequired: isUnruled,
    },
  ];
}

function byteCheck({ others, write }: JudgedWrite): LinkCheck {
  const inputs = write.parts.flatMap(({ scaling }) =>
    scaling?.rule === 'given' ? [scaling.factors.buffer] : [],
  );
  const missing = [...write.after.keys()].filter(
    (name) => write.before?.has(name) !== true && !inputs.includes(name),
  );
  const unknown =
    write.before === null
      ? 'the cache before the write is not given'
      : missing.length > 0
        ? `there is nothing of ${missing.join(', ')} before the write`
        : null;
  const [first] = others?.first ?? [];
  const changed = others?.changed ?? 0;
  return {
    ...exactCheck,
    name: 'other-bytes',
    label: 'Other bytes',
    parts: 'other bytes',
    claim: 'nothing else was written',
    checked: others?.checked ?? 0,
    wrong: changed,
    free: 0,
    statement:
      first === undefined
        ? null
        : `${changed} bytes changed that nothing was to be written to, the first at byte ${first.byte} of ${first.buffer}`,
    unjudged: changed > 0 ? null : unknown,
    isRequired: false,
  };
}

/** Remarks: rules that were taken from the cache, and what is not judged. */
function notesOf(judged: JudgedWrite): string[] {
  const { write, rules, counts } = judged;
  const inferred = write.parts.flatMap(({ name, scaling }, part) => {
    const own = rules[part];
    if (scaling === null || own === null || !own.isInferred || !isSettled(own)) return [];
    const [{ terms, fits }, ...others] = own.fitted;
    if (terms.rule === 'given')
      return [`factors of ${name} are taken as given, for they are not those of what is stored`];
    const alike = others.filter(
      (one) =>
        one.fits === fits &&
        one.terms.rule !== 'given' &&
        (one.terms.rule !== terms.rule || one.terms.maximum !== terms.maximum),
    );
    const words = [...new Set(alike.map((one) => ruleWords({ ...one.terms, floor: null })))];
    const told =
      words.length === 0 ? '' : `, which this cache does not tell from ${words.join(' or ')}`;
    return [
      `the rule of the factors of ${name} is taken from the cache: ${ruleWords(terms)}${told}`,
    ];
  });
  const all = write.parts.reduce((sum, part) => {
    const { heads, columns } = cachePartShape(part);
    return sum + heads * columns * write.slots.filter((slot) => slot >= 0).length;
  }, 0);
  const left = all - counts.judged;
  return [
    ...inferred,
    ...(left === 0
      ? []
      : [
          `${left} of ${all} numbers are not judged: NaN where the format has none, or behind factors that are none`,
        ]),
  ];
}

function describe({ write }: JudgedWrite): string {
  const parts = write.parts.map((part) => {
    const { heads, columns } = cachePartShape(part);
    return `${part.name} of ${heads} × ${columns} in ${part.numbers.code}`;
  });
  const stored = write.slots.filter((slot) => slot >= 0).length;
  return `${stored} of ${write.tokens} tokens, ${listed(parts)}, blocks of ${write.blockSize}`;
}

function settingsOf({ write, rules }: JudgedWrite): LinkAudit['settings'] {
  const ofParts = write.parts.flatMap((part, index) => {
    const { heads, columns } = cachePartShape(part);
    const { name, numbers, scaling, prologue } = part;
    const rule = rules[index]?.fitted[0].terms;
    return Object.entries({
      heads,
      columns,
      format: numbers.code,
      layout: numbers.layout,
      rope: prologue?.rotary?.layout ?? null,
      normEpsilon: prologue?.norm?.epsilon ?? null,
      factorFormat: scaling?.factors.code ?? null,
      factorLayout: scaling?.factors.layout ?? null,
      factorColumns: scaling?.columns ?? null,
      factorRule: rule === undefined ? null : ruleWords(rule),
    }).map(([key, value]) => [`${name}.${key}`, value] as const);
  });
  return { tokens: write.tokens, blockSize: write.blockSize, ...Object.fromEntries(ofParts) };
}

function arithmeticWords({ write }: JudgedWrite): string {
  const hasPrologue = write.parts.some(({ prologue }) => prologue !== null);
  const divisions = new Set(
    write.parts.flatMap(({ scaling }) =>
      scaling === null ? [] : [scaling.division ?? ('any' as const)],
    ),
  );
  const words = {
    divide: 'one fp32 division',
    reciprocal: 'a product with a reciprocal in fp32',
    any: 'an fp32 division or a product with a reciprocal',
  };
  const rounding = write.parts.find(({ prologue }) => prologue !== null)?.prologue?.rounding;
  const clauses = [
    ...(hasPrologue ? [`norm and rotation in any order of ${rounding} operations`] : []),
    ...[...divisions].map((one) => words[one]),
    'one rounding to what is stored',
  ];
  return clauses.join(', ');
}

function causeOf(judged: JudgedWrite): FoundCause | null {
  const mapping = mappingFault(judged);
  if (mapping !== null) return foundCause(mapping, []);
  const cause = explainWrite(judged);
  if (cause === null) return null;
  const others = cause.equivalents.map((id) => ({ id }));
  return foundCause(cause, [], others);
}

/**
 * Judges a write into a cache: each stored number and factor is a correct rounding under its rule, the slot is right, and nothing
 * else was written. A failure has its cause.
 * @throws RequestError for a write whose tensors do not fit together
 */
export function auditCacheWrite(write: CacheWrite): LinkAudit {
  const judged = judgeWrite(write);
  const { counts, others, wrongSlots, sharedSlots } = judged;
  const isWrong =
    counts.wrong +
      counts.wrongFactors +
      (others?.changed ?? 0) +
      wrongSlots.length +
      sharedSlots.length >
    0;
  const cause = isWrong ? causeOf(judged) : null;
  const checks = [
    slotCheck(judged),
    numberCheck(judged),
    ...factorCheck(judged, cause !== null),
    byteCheck(judged),
  ];
  return {
    contract: 'cache-write',
    description: describe(judged),
    settings: settingsOf(judged),
    checks,
    verdict: reachLinkVerdict(checks, () => cause ?? unexplainedCause(), notesOf(judged)),
    arithmetic: arithmeticWords(judged),
    falseAlarmRate: null,
  };
}
