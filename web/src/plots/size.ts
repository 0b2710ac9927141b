// How wide a picture may be: followed as the window changes.
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { printing } from '../state';

/** What a sheet of paper has room for, in pixels. */
const PAPER = 680;

export function useWidth(first = 640): [RefObject<HTMLDivElement | null>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setWidth((before) => (element.clientWidth > 0 ? element.clientWidth : before));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, printing.value ? Math.min(width, PAPER) : width];
}
