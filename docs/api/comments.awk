# Doxygen's input filter: turns the plain comments of heed's headers into Doxygen's.
#   at the top of a file         documents the file
#   above a declaration          documents it, and what follows without a blank line and has no comment of its own
#   at the end of its lines      documents it, too
#   // --- title ---             stays a plain comment
# Declarations of several variables are cut into one for each, as Doxygen documents only the first. Left out is what has no comment and says
# nothing about use: "= delete", "= default", destructors, friends and macros; and the functions that attention calls of a score term, which
# heed/attention/term.h describes.

BEGIN { above = shared = depth = parentheses = 0; statement = ""; top = 1 }

# Follows the braces, parentheses and semicolons of a line, so that starts_declaration() knows where it is. `statement` is what has been read of
# a declaration that is not complete.
function scan(code,   i, c, rest, kind) {
  gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
  gsub(/'([^'\\]|\\.)'/, "0", code)
  for (i = 1; i <= length(code); ++i) {
    c = substr(code, i, 1)
    rest = substr(code, i + 1)
    if (c == "{") {
      kind = kind_of_block()
      kinds[++depth] = kind
      if (kind != "body") statement = ""
    } else if (c == "}") {
      # A function or a namespace ends here, a class or an initializer at its semicolon.
      statement = rest ~ /^[ \t]*[;,)]/ ? "x" : ""
      --depth
    } else if (c == ";" && parentheses == 0 || c == "," && kinds[depth] == "enum") {
      if (kinds[depth] != "body") statement = ""
    } else {
      if (c == "(") ++parentheses
      if (c == ")") --parentheses
      if (kinds[depth] != "body" && (statement != "" || c !~ /[ \t]/)) statement = statement c
    }
  }
  if (statement ~ /^(public|private|protected):$/) statement = ""
}

function kind_of_block() {
  if (parentheses > 0 || statement ~ /[(=]/ || kinds[depth] == "body") return "body"
  if (statement ~ /(^|[ \t])enum[ \t]/) return "enum"
  return statement ~ /(^|[ \t>])(namespace|struct|class|union)([ \t]|$)/ ? "scope" : "body"
}

function starts_declaration() { return statement == "" && parentheses == 0 && kinds[depth] != "body" }

# Doxygen's commands and HTML are plain text here, except in `code`.
function escaped(text,   parts, count, i, out) {
  count = split(text, parts, "`")
  for (i = 1; i <= count; ++i) {
    if (i % 2) gsub(/[\\<>@]/, "\\\\&", parts[i])
    out = out (i > 1 ? "`" : "") parts[i]
  }
  return out
}

function print_comment(lines, count, indent,   i) {
  for (i = 1; i <= count; ++i) print indent "/// " escaped(lines[i])
}

# Cuts "T a = {}, b;" into variables[1] = "T a = {};" and variables[2] = "T b;". 0 if it is something else.
function split_variables(code,   i, c, level, count, name, type) {
  if (code !~ /;$/ || code ~ /^(using|template|friend|struct|class|enum|static constexpr|typedef) ?/ || code ~ /\)( const)?;$/) return 0
  count = 1
  variables[1] = ""
  for (i = 1; i < length(code); ++i) {
    c = substr(code, i, 1)
    if (c ~ /[({<\[]/) ++level
    if (c ~ /[)}>\]]/) --level
    if (c == "," && level == 0) variables[++count] = ""
    else variables[count] = variables[count] c
  }
  if (count == 1) return 0
  name = variables[1]
  sub(/( = |[{\[]).*/, "", name)
  type = name
  sub(/[ *&]*[A-Za-z0-9_]+$/, "", type)
  variables[1] = variables[1] ";"
  for (i = 2; i <= count; ++i) variables[i] = type variables[i] ";"
  return count
}

# Prints the lines of a declaration, once its first block or its semicolon is read.
function print_declaration(   i, count) {
  count = held == 1 && start > 0 ? split_variables(substr(lines[1], length(indent) + 1)) : 0
  if (count > 1) {
    for (i = 1; i <= count; ++i) {
      print_comments()
      print indent variables[i]
    }
  } else {
    print_comments()
    for (i = 1; i <= held; ++i) print lines[i]
  }
  if (above) {
    shared = above
    for (i = 1; i <= above; ++i) common[i] = comment[i]
  } else if (after && depth > start && kinds[depth] == "scope") {  # struct X {  // of its members
    shared = after
    for (i = 1; i <= after; ++i) common[i] = trailing[i]
  }
  above = after = held = 0
}

function print_comments() {
  if (above) print_comment(comment, above, indent)
  else if (!after) print_comment(common, kept, indent)
  print_comment(trailing, after, indent)
}

top && /^\/\// {
  if (NR == 1) print "/// \\file"
  sub(/^\/\/ ?/, "")
  print "/// " escaped($0)
  next
}
{ top = 0 }

/^[ \t]*\/\/ (---|clang-format)/ { above = shared = 0; print; next }

/^[ \t]*\/\// {
  if (!starts_declaration()) next
  sub(/^[ \t]*\/\/ ?/, "")
  comment[++above] = $0
  next
}

/^[ \t]*$/ { above = shared = 0; print; next }

# A list of elementwise functions, and where it declares them.
/^  X\([A-Za-z0-9]+, [a-z0-9_]+\)/ { functions[++listed] = $2; sub(/\).*/, "", functions[listed]) }
/^HEED_ELEMENTWISE\(HEED_DECLARE\)/ {
  for (i = 1; i <= listed; ++i) {
    print_comment(comment, above, "")
    print "Tensor " functions[i] "(const Tensor& x);"
  }
  above = 0
  next
}
/^HEED_[A-Z_]+\(/ { above = 0; next }

/^[ \t]*#/ || continued {
  if (!continued) left_out = $1 == "#undef" || $1 == "#define" && !above
  if (!continued && $1 == "#define") print_comment(comment, above, "")
  if (!continued && $1 !~ /#(define|undef)/) above = shared = 0
  if (!left_out) print
  continued = /\\$/
  if (!continued && $1 == "#define" && !left_out) above = 0
  next
}

function is_of_score_term(bare) {
  if (FILENAME !~ /attention\/terms\//) return 0
  return bare ~ /^static constexpr|^struct [A-Za-z0-9]+Args|(^| )(tensors|info|make|args|visible|check_sizes)\(|\(const [A-Za-z0-9]+Args&/
}

dropping {
  scan($0)
  dropping = !(depth == start && starts_declaration())
  next
}

{
  code = $0
  if (!held && starts_declaration()) {
    match(code, /^[ \t]*/)
    indent = substr(code, 1, RLENGTH)
    bare = substr(code, RLENGTH + 1)
    if (bare ~ /^namespace/) above = shared = 0
    holding = bare !~ /^([}]|namespace|(public|private|protected):)/
    if (holding && !above && bare ~ /(= delete;|= default;|^~|^friend )[^\/]*$/) next
    start = depth
    kept = shared
    if (is_of_score_term(bare)) {
      above = holding = 0
      scan(code)
      dropping = !(depth == start && starts_declaration())
      next
    }
  }
  if (at = match(code, /  \/\/ /)) {
    if (holding) trailing[++after] = substr(code, at + 5)
    code = substr(code, 1, at - 1)
    sub(/[ \t]+$/, "", code)
  }
  if (holding) lines[++held] = code
  else print code
  scan(code)
  if (holding && (depth > start || starts_declaration())) {
    print_declaration()
    holding = 0
  }
}
