// The frame of every picture: title, controls, picture, words, its table, and files of it.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { savePng, saveSvg } from './export';
import { Table, type Content } from './table';

interface Props {
  title: string;
  file: string;
  children: ComponentChildren;
  controls?: ComponentChildren;
  caption?: ComponentChildren;
  /** What its table holds, asked when somebody wants to see it; saved as the picture is unless it has a name of its own. */
  table?: () => Content;
  command?: string | null;
  wide?: boolean;
}

export function Figure({ title, file, children, controls, caption, table, command, wide }: Props) {
  const picture = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  return (
    <figure class={wide ? 'wide' : ''} data-figure={file}>
      <div class="head">
        <h3>{title}</h3>
        <div class="actions" data-export="no">
          {table && (
            <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
              Table
            </button>
          )}
          <button type="button" onClick={() => picture.current && void savePng(picture.current, file)}>
            PNG
          </button>
          <button type="button" onClick={() => picture.current && saveSvg(picture.current, file)}>
            SVG
          </button>
        </div>
      </div>
      {controls && <div class="controls">{controls}</div>}
      <div class="picture" ref={picture}>
        {children}
      </div>
      {caption && <figcaption>{caption}</figcaption>}
      {open && table && <Table file={file} {...table()} />}
      {command && <Command text={command} />}
    </figure>
  );
}

export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    const done = navigator.clipboard?.writeText(text);
    void done?.then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    }, () => undefined);
  };
  return (
    <p class="command">
      <code>
        <bdi>{text}</bdi>
      </code>
      <button type="button" aria-label="Copy the command" onClick={copy}>
        {copied ? 'copied' : 'copy'}
      </button>
    </p>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: { value: string; label: string }[];
  onChange: (value: string) => void;
}

export function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <label>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Check({ label, value, onChange }: { label: string; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: [T, string][];
  onChange: (value: T) => void;
}

/** A few ways to look at something, of which one is on. */
export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button key={key} type="button" aria-pressed={value === key} onClick={() => onChange(key)}>
          {text}
        </button>
      ))}
    </div>
  );
}
