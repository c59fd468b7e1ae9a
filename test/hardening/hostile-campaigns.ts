import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { requestFingerprint } from '../../src/campaign/index.js';
import { mutatedBytes } from './byte-mutations.js';
import { hostileIntegers, hostileJson, hostileTexts } from './hostile-values.js';
import type { Random } from './random.js';
import { mutatedText } from './text-mutations.js';

/** Where the journals lie: the campaign of scripts/fuzz.mjs is compiled into another folder of the repository. */
function journalFolder(): string {
  const folder = join('test', 'hardening', 'campaigns');
  let root = import.meta.dirname;
  while (!existsSync(join(root, folder)) && dirname(root) !== root) root = dirname(root);
  return join(root, folder);
}

/** Journals that check (of a kernel with a bug), conform and profile wrote. */
export const soundJournals: readonly string[] = ['check', 'conform', 'profile'].map((name) =>
  readFileSync(join(journalFolder(), `${name}.journal`), 'utf8'),
);

interface Head {
  readonly shard: object;
  readonly request: object;
}

/** The part that a journal comes to. */
function partText(journal: string): string {
  const [first, ...lines] = journal.trimEnd().split('\n');
  const { kind, ...head } = JSON.parse(first!) as Head & { kind: string };
  const units = lines.map((line) => JSON.parse(line) as object);
  const verdict = { pass: true, sentence: kind };
  return JSON.stringify({
    kind: 'part',
    ...head,
    verdict,
    outOfTime: false,
    execution: null,
    units,
  });
}

/** A line of JSON with its request or its shard changed, and the fingerprint that then is right. */
function forgedHead(line: string, random: Random): string {
  const head = JSON.parse(line) as Head;
  const changed = random.chance(0.5) ? 'request' : 'shard';
  const text = mutatedText(JSON.stringify(head[changed]), random, hostileJson);
  try {
    const forged = { ...head, [changed]: JSON.parse(text) as object };
    return JSON.stringify({ ...forged, fingerprint: requestFingerprint(forged.request) });
  } catch {
    return line.replace(JSON.stringify(head[changed]), text);
  }
}

/** A line with the number of shards, or a length within what a unit found, replaced. */
function hostileLength(line: string, random: Random): string {
  const value = String(random.pick(hostileIntegers));
  return line.replace(random.pick([/"count":\d+/, /"index":\d+/, /:\d+/, /\d+/]), (text) =>
    text.replace(/\d+/, value),
  );
}

/** A journal, or a part, that is wrong or odd in one or a few places. */
export function hostileCampaign(random: Random): Uint8Array {
  const journal = random.pick(soundJournals);
  const sound = random.chance(0.5) ? journal : partText(journal);
  if (random.chance(0.05)) return Buffer.from(sound);
  if (random.chance(0.25)) return mutatedBytes(Buffer.from(sound), random);
  const lines = sound.split('\n');
  const at = random.chance(0.4) ? 0 : random.below(lines.length);
  const change = random.pick([
    (line: string) => mutatedText(line, random, hostileJson),
    (line: string) => mutatedText(line, random, hostileJson),
    (line: string) => (at === 0 ? forgedHead(line, random) : hostileLength(line, random)),
    (line: string) => hostileLength(line, random),
    (line: string) => `${line}\n${line}`,
    (line: string) =>
      line.replace(/"unit":"[^"]*"/, `"unit":${JSON.stringify(random.pick(hostileTexts))}`),
  ]);
  lines[at] = change(lines[at]);
  return Buffer.from(lines.join('\n'));
}
