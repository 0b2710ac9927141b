// The commands that make the numbers of a picture, as somebody would type them.
import type { About } from './about';

/** A word of a command line; quoted where a shell would take it apart. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** covary NAME MODEL DATA flags; null where the page does not know what the files are called. */
export function command(about: About, name: string, flags = ''): string | null {
  if (!about.model || !about.data) return null;
  const words = ['covary', name, quoted(about.model), quoted(about.data)];
  return [...words, flags].filter((word) => word !== '').join(' ');
}

/** A command about the model alone. */
export function inspect(about: About, flags = ''): string | null {
  return about.model ? ['covary inspect', quoted(about.model), flags].filter((word) => word !== '').join(' ') : null;
}
