import { formatNumber } from '../../words/index.js';
import type { CheckResult } from '../../../properties/index.js';
import type { CheckAssembly, CheckFinding, ReportedProperty } from './check-report.js';
import { formatCount } from '../../words/index.js';

/** Numbers of shards in words, as in "shards 1, 3 of 4"; the empty text for none. */
function shardsInWords(numbers: readonly number[], count: number): string {
  if (numbers.length === 0) return '';
  return `shard${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')} of ${count}`;
}

/** The verdict of a check in a sentence: what holds or not, what was never tried, on how many problems. */
export function checkSentence(
  properties: readonly ReportedProperty[],
  findings: readonly CheckFinding[],
  { seconds, seed, outOfTime }: Pick<CheckResult, 'seconds' | 'seed' | 'outOfTime'>,
  { execution, runsPerProperty, shards, strict = false }: CheckAssembly,
): string {
  if (execution !== null) return `FAIL: ${execution}.`;
  const count = (result: ReportedProperty['result']) =>
    properties.filter((property) => property.result === result).length;
  const [violated, held, untried] = [count('violated'), count('holds'), count('untried')];
  const tried = properties.reduce((sum, property) => sum + property.tried, 0);
  const problems = `${formatCount(tried, 'problem')} in ${formatNumber(seconds)} s, seed ${seed}`;
  const late = shards === undefined ? '' : shardsInWords(shards.outOfTime, shards.count);
  const isPart = shards !== undefined && shards.included.length < shards.count;
  const time = [
    outOfTime ? `; the time was up before each had its ${runsPerProperty}` : '',
    outOfTime && late !== '' ? ` in ${late}` : '',
    isPart ? `; this is ${shardsInWords(shards.included, shards.count)} only` : '',
  ].join('');
  const ofProperties = (n: number) => `${n} ${n === 1 ? 'property' : 'properties'}`;
  // Of a part, the other shards tell.
  const gap =
    untried === 0 || isPart ? '' : `, ${untried} ${untried === 1 ? 'was' : 'were'} never tried`;
  const causes =
    findings.length < violated ? `, apparently by ${formatCount(findings.length, 'cause')}` : '';
  if (violated > 0)
    return `FAIL: ${violated} of ${ofProperties(violated + held)} ${violated === 1 ? 'is' : 'are'} violated${causes}${gap} (${problems})${time}.`;
  if (held === 0) return `NOTHING TRIED: no property was tried on any problem${time}.`;
  const holds = `${ofProperties(held)} ${held === 1 ? 'holds' : 'hold'}${gap}`;
  return strict && untried > 0
    ? `FAIL: ${holds}, which --strict does not admit (${problems})${time}.`
    : `PASS: ${holds} (${problems})${time}.`;
}
