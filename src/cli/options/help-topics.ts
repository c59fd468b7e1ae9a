import { Help, type Command } from 'commander';

/** A part of a command's help that is shown where it is asked for: options of one subject, and the text on them. */
export interface HelpTopic<Key extends string = string> {
  /** The word behind --help. */
  readonly name: string;
  /** The subject, in a few words. */
  readonly title: string;
  /** The keys of its options. */
  readonly options: readonly Key[];
  readonly text?: string;
}

/** The help of a command: the text below its options, and what is left out of it. */
interface CommandHelp {
  readonly name: string;
  readonly details: string;
  readonly topics?: readonly HelpTopic[] | undefined;
}

const helpFlags = ['--help', '-h'];

/** The words that ask for a help. */
export const helpWords: readonly string[] = [...helpFlags, 'help'];

/** The word that follows --help on the command line that is parsed, or `help` and the command; undefined for none. */
export function askedTopic(command: Command): string | undefined {
  let root: Command & { readonly rawArgs?: readonly string[] } = command;
  while (root.parent !== null) root = root.parent;
  const words = root.rawArgs ?? [];
  const at = words.findIndex((word) => helpFlags.includes(word));
  if (at >= 0) return words[at + 1];
  const help = words.indexOf('help');
  return help < 0 ? undefined : words[help + (root === command ? 1 : 2)];
}

function topicLines(name: string, topics: readonly HelpTopic[]): string {
  const width = Math.max(...topics.map((one) => one.name.length));
  const lines = [...topics.map((one) => [one.name, one.title] as const), ['all', 'everything']];
  return `
More options, by flashproof ${name} --help <topic>:
${lines.map(([word, title]) => `  ${word.padEnd(width)}  ${title}`).join('\n')}
`;
}

/**
 * Adds the help of a command. With topics `--help` shows the other options and lists the topics, `--help <topic>` the options and the text
 * of one, and `--help all` everything.
 */
export function addHelp(command: Command, { name, details, topics = [] }: CommandHelp): void {
  if (topics.length === 0) {
    command.addHelpText('after', details);
    return;
  }
  for (const { title, options } of topics)
    for (const option of command.options)
      if (options.includes(option.attributeName())) option.helpGroup(`${title}:`);
  const asked = () => {
    const word = askedTopic(command);
    return word === 'all' ? 'all' : topics.find((one) => one.name === word);
  };
  const isShown = (key: string) => {
    const topic = asked();
    if (topic === 'all') return true;
    if (topic !== undefined) return topic.options.includes(key);
    return !topics.some(({ options }) => options.includes(key));
  };
  command.configureHelp({
    formatHelp(shown, helper) {
      const narrowed = Object.create(helper) as Help;
      narrowed.visibleOptions = (of) =>
        helper.visibleOptions(of).filter((option) => isShown(option.attributeName()));
      return Help.prototype.formatHelp.call(narrowed, shown, narrowed);
    },
  });
  command.addHelpText('after', () => {
    const topic = asked();
    if (topic === 'all') return topics.map(({ text = '' }) => text).join('') + details;
    return topic === undefined ? topicLines(name, topics) + details : (topic.text ?? '');
  });
}
