import type { Command } from 'commander';
import { nearestName } from '../../words/index.js';
import { askedTopic, type HelpTopic } from './help-topics.js';

/** A command with the topics of its help. */
interface TopicsOfCommand {
  readonly name: string;
  readonly topics?: readonly Pick<HelpTopic, 'name'>[];
}

function namesOf({ topics = [] }: TopicsOfCommand): readonly string[] {
  return topics.map(({ name }) => name);
}

/** What is near a word that is no command: the help of a command, or those with a topic of that name. */
function nearHelps(word: string, commands: readonly string[], rows: readonly TopicsOfCommand[]) {
  const near = nearestName(word, [...rows.flatMap(namesOf), ...commands]);
  if (near === null) return [];
  if (commands.includes(near)) return [`flashproof ${near} --help`];
  return rows
    .filter((row) => namesOf(row).includes(near))
    .map(({ name }) => `flashproof ${name} --help ${near}`);
}

/** Refuses a help that is asked for by a word that names no command, or by one that is almost a topic. */
export function refuseUnknownHelp(program: Command, rows: readonly TopicsOfCommand[]): void {
  const refuse = (what: string, near: readonly string[]) => {
    const clause = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}`;
    program.error(`error: unknown ${what}${clause}`);
  };
  const commands = program.commands.map((command) => command.name());
  program.on('beforeAllHelp', ({ command }: { readonly command: Command }) => {
    const word = askedTopic(command);
    if (word === undefined || word.startsWith('-')) return;
    // --help audit, which the parser takes for the root's.
    program.commands.find((one) => command === program && one.name() === word)?.help();
    if (command === program) return refuse(`command '${word}'`, nearHelps(word, commands, rows));
    const topics = rows.filter(({ name }) => name === command.name()).flatMap(namesOf);
    const near = nearestName(word, topics);
    if (near !== null && near !== word)
      refuse(`topic '${word}'`, [`flashproof ${command.name()} --help ${near}`]);
  });
}
