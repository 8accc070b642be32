/** Texts of TVMScript, LLVM IR and assembly as coloured pieces. */

const SCRIPT = [
  ["comment", /#.*/y],
  ["string", /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y],
  ["keyword", /\b(?:def|for|in|with|as|if|elif|else|return|import|from|class|while|not|and|or)\b/y],
  ["decorator", /@[\w.]+/y],
  ["function", /\b[TRI](?:\.\w+)+/y],
  ["number", /\b\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?\b/y],
  ["name", /[A-Za-z_]\w*/y],
];
const LLVM = [
  ["comment", /;.*/y],
  ["string", /"(?:[^"\\]|\\.)*"/y],
  ["vector", /<\d+ x [\w.]+>/y],
  ["register", /%[\w.$-]+/y],
  ["global", /[@!][\w.$-]+/y],
  ["vector", /\b(?:fmul|fadd|fsub|fdiv|fmuladd|shufflevector|insertelement|extractelement)\b/y],
  ["keyword", new RegExp("\\b(?:define|declare|call|load|store|phi|br|ret|getelementptr|icmp|fcmp|"
    + "add|sub|mul|shl|lshr|ashr|and|or|xor|select|switch|zext|sext|trunc|bitcast|tail|alloca|"
    + "inbounds|label|to|private|internal|unreachable|atomicrmw|fence)\\b", "y")],
  ["function", /\b(?:i\d+|float|double|half|bfloat|ptr|void)\b/y],
  ["number", /-?\b\d[\d.]*(?:e[-+]?\d+)?\b|0x[0-9A-Fa-f]+/y],
  ["name", /[A-Za-z_][\w.]*/y],
];
const ASSEMBLY = [
  ["comment", /(?:#|\/\/|;).*/y],
  ["string", /"(?:[^"\\]|\\.)*"/y],
  ["decorator", /^\s*[\w.$]+:/y],
  ["vector", /\bv?f(?:n?m(?:add|sub))\w*|\bv\w*[ps][sdh]\b|\bvp\w+|\bvmov\w+/y],
  ["register", /%[a-z]\w*/y],
  ["number", /\$?-?(?:0x[0-9a-fA-F]+|\b\d+)\b/y],
  ["keyword", /(?<=^\s*)[a-z][\w.]*/y],
  ["name", /[A-Za-z_.][\w.$]*/y],
];

const GRAMMARS = {
  scheduled: SCRIPT, lowered: SCRIPT, script: SCRIPT,
  llvm_before: LLVM, llvm: LLVM, assembly: ASSEMBLY,
};
const LONGEST = 4000; // beyond, a line is data rather than a program

/** Pieces [class, text] of a line; their texts together are the line. */
export function pieces(line, language) {
  const grammar = GRAMMARS[language];
  if (!grammar || line.length > LONGEST) return [["", line]];
  const found = [];
  let plain = "";
  for (let at = 0; at < line.length;) {
    let match = null;
    let kind = "";
    for (const [name, pattern] of grammar) {
      pattern.lastIndex = at;
      match = pattern.exec(line);
      if (match && match[0]) {
        kind = name;
        break;
      }
      match = null;
    }
    if (!match || kind === "name") {
      const piece = match ? match[0] : line[at];
      plain += piece;
      at += piece.length;
      continue;
    }
    if (plain) found.push(["", plain]);
    plain = "";
    found.push([kind, match[0]]);
    at += match[0].length;
  }
  if (plain) found.push(["", plain]);
  return found;
}
