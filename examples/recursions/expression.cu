/* The value of a long arithmetic expression. It has whole numbers, + - * and parentheses, and is computed modulo 2^64,
 * where sums and products may be grouped in any way.
 *
 * The expression is read into nodes: a number, or a sum or product of terms that lie next to each other. A task is a
 * node, or a part of its terms if there are many; so a sum of a million numbers is a tree, too. */
#include <dpr_recursion.cuh>

#include <cctype>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "example.h"
#include "memory.h"

namespace {

enum : uint32_t { number, sum, product };

struct term {
    uint32_t node, negative;
};

struct node {
    uint64_t value;        /* of a number */
    uint32_t what, size;   /* nodes of it and below it */
    uint32_t first, count; /* terms of a sum or product */
};

struct expression {
    struct task {
        uint32_t node, negative;
        uint32_t first, count; /* terms */
    };
    using result = uint64_t;
    struct data {
        const ::node *nodes;
        const term *terms;
    };
    static constexpr int most_children = 8;
    static constexpr bool host_data = true;

    DPR_BOTH static task task_of(const data &d, const term &t) {
        return {t.node, t.negative, d.nodes[t.node].first, d.nodes[t.node].count};
    }
    DPR_POLICY int divide(const data &d, const task &t, dpr::children<expression> children) {
        const uint32_t n = t.count < most_children ? t.count : most_children;
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t begin = static_cast<uint32_t>(uint64_t{t.count} * i / n),
                           end = static_cast<uint32_t>(uint64_t{t.count} * (i + 1) / n);
            if (end - begin == 1)
                children[static_cast<int>(i)] = task_of(d, d.terms[t.first + begin]);
            else
                children[static_cast<int>(i)] = {t.node, 0, t.first + begin, end - begin};
        }
        return static_cast<int>(n);
    }
    DPR_BOTH static result signed_value(const task &t, result value) { return t.negative ? 0 - value : value; }
    DPR_POLICY result base(const data &d, const task &t) { return signed_value(t, d.nodes[t.node].value); }
    DPR_POLICY result combine(const data &d, const task &t, dpr::results<expression> results, int n) {
        const bool adds = d.nodes[t.node].what == sum;
        result value = results[0];
        for (int i = 1; i < n; ++i)
            value = adds ? value + results[i] : value * results[i];
        return signed_value(t, value);
    }
    DPR_POLICY uint64_t cost(const data &d, const task &t) {
        const ::node &n = d.nodes[t.node];
        return n.what == number ? 1 : uint64_t{n.size} * t.count / n.count;
    }
};

/* ---- Reading ---- */

/* Reads an expression without recursion, so that parentheses may be as deep as memory allows. */
class reader {
  public:
    std::vector<node> nodes;
    std::vector<term> terms;
    std::string error; /* a clause, if the text is no expression */

    /* Returns the whole expression's node. */
    uint32_t read(const std::string &text) {
        if (text.size() > INT32_MAX)
            error = "it has 2^31 bytes or more";
        open_.emplace_back();
        for (size_t i = 0; i < text.size() && error.empty();)
            read_next(text, &i);
        if (error.empty() && wants_value_)
            error = "a number is missing at its end";
        if (error.empty() && open_.size() > 1)
            error = "a ')' is missing at its end";
        if (!error.empty())
            return 0;
        finish_product();
        return make(sum, open_.back().sum).node;
    }

  private:
    /* Between two parentheses: the terms of its sum, and of the product that is being read. */
    struct level {
        std::vector<term> sum, product;
        uint32_t negative = 0; /* the next value's sign */
    };
    std::vector<level> open_;
    bool wants_value_ = true; /* a number, a sign or '(' comes next */

    /* Reads a number, or one other character. */
    void read_next(const std::string &text, size_t *i) {
        const char c = text[*i];
        if (wants_value_ && std::isdigit(static_cast<unsigned char>(c))) {
            add(read_number(text, i));
            return;
        }
        if (wants_value_ && (c == '-' || c == '+'))
            open_.back().negative ^= c == '-';
        else if (wants_value_ && c == '(')
            open_.emplace_back();
        else if (!wants_value_ && c == ')' && open_.size() > 1)
            close();
        else if (!wants_value_ && (c == '+' || c == '-' || c == '*'))
            join(c);
        else if (!std::isspace(static_cast<unsigned char>(c)))
            error = "it has " + shown(c) + " at byte " + std::to_string(*i);
        ++*i;
    }

    /* A control character, a zero byte, or a part of a longer character says nothing in a message, or ends it. */
    static std::string shown(char c) {
        char hex[8];
        (void)std::snprintf(hex, sizeof hex, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        return c > ' ' && c < 0x7f ? std::string{'\'', c, '\''} : hex;
    }
    uint32_t read_number(const std::string &text, size_t *i) {
        uint64_t value = 0;
        for (; *i < text.size() && std::isdigit(static_cast<unsigned char>(text[*i])); ++*i)
            value = 10 * value + static_cast<uint64_t>(text[*i] - '0');
        nodes.push_back({value, number, 1, 0, 0});
        return static_cast<uint32_t>(nodes.size() - 1);
    }
    /* Adds a value to the product that is being read. */
    void add(uint32_t value) {
        open_.back().product.push_back({value, open_.back().negative});
        open_.back().negative = 0;
        wants_value_ = false;
    }
    term make(uint32_t what, const std::vector<term> &of) {
        if (of.size() == 1 && (what == product || of[0].negative == 0))
            return of[0];
        node n = {0, what, 1, static_cast<uint32_t>(terms.size()), static_cast<uint32_t>(of.size())};
        for (const term &t : of)
            n.size += nodes[t.node].size;
        terms.insert(terms.end(), of.begin(), of.end());
        nodes.push_back(n);
        return {static_cast<uint32_t>(nodes.size() - 1), 0};
    }
    void finish_product() {
        open_.back().sum.push_back(make(product, open_.back().product));
        open_.back().product.clear();
    }
    void join(char c) {
        wants_value_ = true;
        if (c == '*')
            return;
        finish_product();
        open_.back().negative = c == '-';
    }
    void close() {
        finish_product();
        const uint32_t value = make(sum, open_.back().sum).node;
        open_.pop_back();
        add(value);
    }
};

/* ---- The check: the value by two stacks, while the text is read ---- */

class calculator {
  public:
    static uint64_t value_of(const std::string &text) {
        calculator c;
        bool wants_value = true;
        for (size_t i = 0; i < text.size(); ++i) {
            const char x = text[i];
            if (std::isdigit(static_cast<unsigned char>(x))) {
                uint64_t value = 0;
                for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); ++i)
                    value = 10 * value + static_cast<uint64_t>(text[i] - '0');
                --i;
                c.values_.push_back(value);
                wants_value = false;
            } else if (x == '(') {
                c.pending_.push_back('(');
                wants_value = true;
            } else if (x == ')') {
                c.apply_all(1);
                c.pending_.pop_back();
                wants_value = false;
            } else if (wants_value && x == '-') {
                c.pending_.push_back('~');
            } else if (!wants_value && (x == '+' || x == '-' || x == '*')) {
                c.apply_all(x == '*' ? 2 : 1);
                c.pending_.push_back(x);
                wants_value = true;
            }
        }
        c.apply_all(1);
        return c.values_.back();
    }

  private:
    std::vector<uint64_t> values_;
    std::vector<char> pending_;

    static int rank(char c) { return c == '~' ? 3 : c == '*' ? 2 : c == '(' ? 0 : 1; }

    void apply_all(int least) {
        for (; !pending_.empty() && rank(pending_.back()) >= least; pending_.pop_back()) {
            const uint64_t last = values_.back();
            const char c = pending_.back();
            if (c == '~') {
                values_.back() = 0 - last;
                continue;
            }
            values_.pop_back();
            uint64_t &first = values_.back();
            first = c == '+' ? first + last : c == '-' ? first - last : first * last;
        }
    }
};

/* ---- An expression of so many numbers ---- */

std::string make_text(uint64_t numbers) {
    constexpr int deepest = 200;
    std::string text;
    uint64_t state = 2026;
    int depth = 0;
    for (uint64_t i = 0; i < numbers; ++i) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's generator */
        const uint64_t random = state >> 33;
        if (i > 0)
            text += "++-*"[random % 4];
        if (random / 4 % 8 == 0)
            text += '-';
        for (uint64_t k = random / 32 % 8; k > 5 && depth < deepest; --k, ++depth)
            text += '(';
        text += std::to_string(random / 256 % 1000);
        for (uint64_t k = random / 256000 % 8; k > 5 && depth > 0; --k, --depth)
            text += ')';
        if (random % 64 == 0)
            text += '\n';
    }
    return text + std::string(static_cast<size_t>(depth), ')');
}

bool read_file(const char *name, std::string *text) {
    std::FILE *file = std::fopen(name, "rb");
    if (!file)
        return false;
    char piece[65536];
    for (size_t n; text->size() <= INT32_MAX && (n = std::fread(piece, 1, sizeof piece, file)) > 0;)
        text->append(piece, n);
    const bool is_read = !std::ferror(file);
    (void)std::fclose(file);
    return is_read;
}

/* A program's runs all have the same file, which may be a pipe, so the first one reads it. */
dpr_status find_text(const recursion_request *request, std::string *text, recursion_answer *answer) {
    static std::optional<std::string> of_file;
    if (!request->input) {
        *text = make_text(request->size);
        return DPR_OK;
    }
    if (!of_file) {
        std::string read;
        if (!read_file(request->input, &read))
            return recursion_fail(answer, "the file '%.60s' cannot be read", request->input);
        of_file = std::move(read);
    }
    *text = *of_file;
    return DPR_OK;
}

template <class T>
void copy(const dpr_ctx *ctx, const recursion_request *request, const dpr_recursion_report *last,
          const std::vector<T> &from, const array<T> &to) {
    std::copy(from.begin(), from.end(), to.get());
    prefetch(ctx, request->options, last, to.get(), from.size() + 1);
}

} // namespace

DPR_RECURSION(expression, expression)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    std::string text;
    reader from;
    dpr_status status = find_text(request, &text, answer);
    if (status != DPR_OK)
        return status;
    const uint32_t whole = from.read(text);
    if (!from.error.empty())
        return recursion_fail(answer, "this is no expression: %.70s", from.error.c_str());
    const array<node> nodes(ctx, from.nodes.size() + 1);
    const array<term> terms(ctx, from.terms.size() + 1);
    copy(ctx, request, report, from.nodes, nodes);
    copy(ctx, request, report, from.terms, terms);
    const expression::data data = {nodes.get(), terms.get()};
    const expression::task root = {whole, 0, from.nodes[whole].first, from.nodes[whole].count};
    uint64_t value = 0;
    status = expression_run(ctx, &root, 1, &data, &value, request->options, report, nullptr);
    if (status == DPR_OK)
        recursion_set_answer(answer, value == calculator::value_of(text), "%zu nodes; the value is %lld modulo 2^64",
                             from.nodes.size(), static_cast<long long>(value));
    return status;
}

extern "C" const recursion_example recursion_expression = {"expression",
                                                           "the value of a long arithmetic expression, modulo 2^64",
                                                           "how many numbers",
                                                           1000000,
                                                           1,
                                                           1 << 26,
                                                           within_memory<run>,
                                                           "an expression of whole numbers, + - * ( )",
                                                           0,
                                                           0};
